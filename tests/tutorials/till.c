/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The till of docs/tutorials/lost-update.rst: sets prices, one after the other, and then
 * asks the stock for the price. It must be the last one.
 */
#include "shop.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS  200
#define AT_ONCE 2

int stock;

void say(unsigned kind, unsigned version, unsigned price)
{
    struct message m = { .kind = kind, .version = version, .price = price };

    send(stock, &m, sizeof(m), 0);
}

void set_price(unsigned version, unsigned price)
{
    say(SET, version, price);
}

/* Questions and answers may be lost, so it asks again. */
unsigned ask_price(void)
{
    static unsigned question;
    struct pollfd can_read = { .fd = stock, .events = POLLIN };
    struct message m;

    question++;
    for (;;) {
        say(ASK, question, 0);
        while (poll(&can_read, 1, 500) > 0) {
            if (recv(stock, &m, sizeof(m), 0) == sizeof(m) && m.kind == ANSWER &&
                m.version == question) {
                return m.price;
            }
        }
    }
}

void complain(unsigned wanted, unsigned price)
{
    printf("the price is %u, and I have set %u\n", price, wanted);
}

int main(int argc, char **argv)
{
    struct sockaddr_in there = { .sin_family = AF_INET, .sin_port = htons(STOCK_PORT) };
    unsigned version = 0, price = 0;

    inet_aton(argv[1], &there.sin_addr);
    stock = socket(AF_INET, SOCK_DGRAM, 0);
    if (connect(stock, (struct sockaddr *)&there, sizeof(there))) {
        perror("connect");
        return 1;
    }
    ask_price();                    /* until the stock is there */
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < AT_ONCE; i++) {
            version++;
            set_price(version, 100 + version);
        }
        usleep(200000);             /* all have arrived by then */
        price = ask_price();
        if (price != 100 + version) {
            complain(100 + version, price);
            break;
        }
    }
    for (unsigned i = 0; i < 3; i++) {
        say(BYE, 0, 0);
        usleep(100000);
    }
    return 0;
}
