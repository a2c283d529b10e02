//! A bar chart of the ratios to the best peer, readable on light and on dark pages.

use std::fmt::Write;

use super::Row;

const ROW_HEIGHT: usize = 22;
const LABEL_WIDTH: f64 = 300.0;
/// Width of a bar as long as the best peer's.
const UNIT_WIDTH: f64 = 260.0;
/// Longer bars are cut here.
const LONGEST: f64 = 1.4;
const TOP: usize = 34;

/// One bar for each row that has a ratio and where less is better.
pub(super) fn ratios(rows: &[Row]) -> String {
    let bars: Vec<(String, f64)> = rows
        .iter()
        .filter(|row| !row.more_is_better)
        .filter_map(|row| Some((format!("{}: {}", row.title, row.label), row.ratio()?)))
        .collect();
    let height = TOP + bars.len() * ROW_HEIGHT + 10;
    let width = UNIT_WIDTH.mul_add(LONGEST, LABEL_WIDTH) + 60.0;
    let line = LABEL_WIDTH + UNIT_WIDTH;
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="as-router's cost as a ratio to the best peer's">
<style>
text {{ font: 12px system-ui, sans-serif; fill: #1f2328; }}
.bar {{ fill: #1a7f37; }} .over {{ fill: #bc4c00; }} .line {{ stroke: #59636e; stroke-dasharray: 4 3; }}
@media (prefers-color-scheme: dark) {{
text {{ fill: #e6edf3; }} .bar {{ fill: #3fb950; }} .over {{ fill: #db6d28; }} .line {{ stroke: #9198a1; }}
}}
</style>
<text x="{line}" y="16" text-anchor="middle">best peer = 1.0 (shorter is cheaper)</text>
<line class="line" x1="{line}" y1="22" x2="{line}" y2="{height}"/>
"##
    );
    for (index, (label, ratio)) in bars.iter().enumerate() {
        let y = TOP + index * ROW_HEIGHT;
        let length = ratio.min(LONGEST) * UNIT_WIDTH;
        let class = if *ratio > 1.0 { "over" } else { "bar" };
        let (text_y, value_x) = (y + 12, LABEL_WIDTH + length + 6.0);
        let label_x = LABEL_WIDTH - 8.0;
        let _ = writeln!(
            svg,
            r#"<text x="{label_x}" y="{text_y}" text-anchor="end">{label}</text><rect class="{class}" x="{LABEL_WIDTH}" y="{y}" width="{length:.1}" height="16" rx="2"/><text x="{value_x:.1}" y="{text_y}">{ratio:.2}</text>"#
        );
    }
    svg.push_str("</svg>\n");
    svg
}
