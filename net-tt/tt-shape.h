/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fate of a frame in a hub: through which ports it leaves, when, or that it is
 * lost. Everything that looks like chance comes from a seed: the n-th frame of a port
 * has the same fate towards another port in every run with this seed.
 *
 * Context: one thread; no clock, the time now is an argument.
 */
#ifndef TT_SHAPE_H
#define TT_SHAPE_H

#include "io/tt-base.h"

#define TT_SHAPE_PORTS_MAX  256
#define TT_SHAPE_PPM        1000000     /* parts per million: always */
#define TT_SHAPE_TIME_MAX   (60 * UINT64_C(1000000000))    /* of a delay, in ns */
#define TT_SHAPE_RATE_MIN   1000        /* bits a second */

typedef struct TtShapeOptions {
    uint64_t seed;
    uint64_t delay_ns;
    uint64_t jitter_ns;         /* added: 0 to this; frames may overtake each other */
    uint32_t loss_ppm;
    uint64_t rate_bits;         /* a second, out of each port; 0: no limit */
    uint64_t queue_ns;          /* what would wait longer than this is lost; rate only */
} TtShapeOptions;

typedef struct TtShape {
    TtShapeOptions o;
    uint64_t count[TT_SHAPE_PORTS_MAX];     /* frames that came in by the port */
    uint64_t free_ns[TT_SHAPE_PORTS_MAX];   /* the port has sent all before */
} TtShape;                      /* @o is set, the rest begins as zeros */

typedef enum TtFate { TT_FATE_GOES, TT_FATE_LOST, TT_FATE_QUEUE_FULL } TtFate;

/* A frame came in by @port. Returns its number there. */
uint64_t tt_shape_came(TtShape *s, unsigned port);
/* Its fate towards port @to; it leaves at *@at_ns. */
TtFate tt_shape_fate(TtShape *s, unsigned port, uint64_t number, unsigned to,
                     uint32_t len, uint64_t now_ns, uint64_t *at_ns);

/* The port is another's from now on: nothing waits to be sent there. */
void tt_shape_left(TtShape *s, unsigned port);

/* ---- who is where: as a switch learns ---- */

#define TT_PLACES 1024

typedef struct TtPlaces {
    struct {
        uint8_t mac[6];
        bool is_known;
        uint8_t port;
    } place[TT_PLACES];
} TtPlaces;

#define TT_PORT_ALL UINT32_MAX

/* @frame, 14 bytes at least, came by @port: remembers the sender's. Returns the port
 * of whom it is for, or TT_PORT_ALL. */
unsigned tt_places_pass(TtPlaces *p, const uint8_t *frame, unsigned port);
/* The port is gone. */
void tt_places_forget(TtPlaces *p, unsigned port);

#endif
