/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stock of docs/tutorials/lost-update.rst: keeps the price that the till has set.
 * What comes a second time it leaves out; what comes too late, not: the bug.
 */
#include "shop.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>

struct item {
    unsigned version;
    unsigned price;
};

struct item bread;

void apply(const struct message *m)
{
    if (m->version == bread.version) {
        return;                     /* it came twice */
    }
    bread.price = m->price;
    bread.version = m->version;     /* the bug shows here: m may be older */
}

void answer(int fd, const struct message *m, const struct sockaddr_in *to)
{
    struct message a = { .kind = ANSWER, .version = m->version, .price = bread.price };

    sendto(fd, &a, sizeof(a), 0, (const struct sockaddr *)to, sizeof(*to));
}

int main(void)
{
    struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(STOCK_PORT) };
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct message m = { 0 };

    if (bind(fd, (struct sockaddr *)&here, sizeof(here))) {
        perror("bind");
        return 1;
    }
    while (m.kind != BYE) {
        struct sockaddr_in from;
        socklen_t len = sizeof(from);

        if (recvfrom(fd, &m, sizeof(m), 0, (struct sockaddr *)&from, &len) != sizeof(m)) {
            continue;
        }
        if (m.kind == SET) {
            apply(&m);
        } else if (m.kind == ASK) {
            answer(fd, &m, &from);
        }
    }
    return 0;
}
