//! Builds queries, right and wrong.

pub(crate) const A: u16 = 1;
pub(crate) const SOA: u16 = 6;
pub(crate) const PTR: u16 = 12;
pub(crate) const AAAA: u16 = 28;
pub(crate) const OPT: u16 = 41;
pub(crate) const ANY: u16 = 255;

pub(crate) const RD: u16 = 0x0100;
pub(crate) const AD: u16 = 0x0020;
pub(crate) const CD: u16 = 0x0010;

pub(crate) const DO: u32 = 0x8000;

/// A query for class IN with RD set, as stub resolvers send it.
pub(crate) fn query(name: &str, kind: u16) -> Vec<u8> {
    message(RD, [1, 0, 0, 0], &question(&wire_name(name), kind, 1))
}

/// The same with an OPT record.
pub(crate) fn edns_query(name: &str, kind: u16) -> Vec<u8> {
    with_additional(query(name, kind), &opt(1232, 0, &[]))
}

pub(crate) fn message(flags: u16, counts: [u16; 4], sections: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xbe, 0xef];
    bytes.extend(flags.to_be_bytes());
    bytes.extend(counts.iter().flat_map(|count| count.to_be_bytes()));
    bytes.extend(sections);
    bytes
}

pub(crate) fn question(name: &[u8], kind: u16, class: u16) -> Vec<u8> {
    [name, &kind.to_be_bytes(), &class.to_be_bytes()].concat()
}

/// A name from text, without any rule but that dots end labels.
pub(crate) fn wire_name(name: &str) -> Vec<u8> {
    let labels: Vec<&[u8]> = name
        .split('.')
        .filter(|label| !label.is_empty())
        .map(str::as_bytes)
        .collect();
    name_of(&labels)
}

pub(crate) fn name_of(labels: &[&[u8]]) -> Vec<u8> {
    let mut wire = Vec::new();
    for label in labels {
        wire.push(u8::try_from(label.len()).expect("a label"));
        wire.extend(*label);
    }
    wire.push(0);
    wire
}

pub(crate) fn record(name: &[u8], kind: u16, class: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).expect("fits 16 bits");
    [
        name,
        &kind.to_be_bytes(),
        &class.to_be_bytes(),
        &ttl.to_be_bytes(),
        &length.to_be_bytes(),
        data,
    ]
    .concat()
}

pub(crate) fn opt(size: u16, flags: u32, options: &[u8]) -> Vec<u8> {
    record(&[0], OPT, size, flags, options)
}

/// The message with one more record at its end.
pub(crate) fn with_additional(mut message: Vec<u8>, record: &[u8]) -> Vec<u8> {
    message[11] += 1;
    message.extend(record);
    message
}

/// The message with other flags.
pub(crate) fn with_flags(mut message: Vec<u8>, flags: u16) -> Vec<u8> {
    message[2..4].copy_from_slice(&flags.to_be_bytes());
    message
}
