/* Prints the addresses that the C library finds for each name on the command line, or fails with its reason. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list;
        int error = getaddrinfo(argv[i], "443", &hints, &list);
        if (error) {
            fprintf(stderr, "%s: %s\n", argv[i], gai_strerror(error));
            return 1;
        }
        for (; list; list = list->ai_next) {
            char host[64];
            getnameinfo(list->ai_addr, list->ai_addrlen, host, sizeof host, 0, 0, NI_NUMERICHOST);
            printf("%s %s\n", argv[i], host);
        }
    }
    return 0;
}
