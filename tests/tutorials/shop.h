/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the two services of docs/tutorials/lost-update.rst say to each other: datagrams
 * between a till, which sets prices, and a stock, which knows them.
 */
#ifndef SHOP_H
#define SHOP_H

#define STOCK_PORT 700

enum { SET = 1, ASK, ANSWER, BYE };

struct message {
    unsigned kind;
    unsigned version;           /* SET: each has a higher one; ASK: of the question */
    unsigned price;
};

#endif
