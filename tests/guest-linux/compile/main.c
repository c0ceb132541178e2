/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls all parts, and says their sum. */
#include <stdint.h>
#include <stdio.h>

#define FOR_EACH(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) \
    X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24)
#define DECLARE(n) uint32_t part##n(void);
#define CALL(n) sum = sum * 33 + part##n(); printf("%d %u\n", n, sum);

FOR_EACH(DECLARE)

int main(void)
{
    uint32_t sum = 0;

    FOR_EACH(CALL)
    printf("sum=%u\n", sum);
    return 0;
}
