/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Incidents: something went wrong, as somebody says who watches the VM (tt watch), or as
 * another VM of the group says. The place is marked, the window is saved, and all VMs of
 * the group do the same at one consistent cut.
 *
 * Context: main thread, the BQL is held.
 */
#ifndef TT_INCIDENT_H
#define TT_INCIDENT_H

/* Once, at start. */
void tt_incident_init(void);
/* The recording's position gets a mark, incident-N: *@mark, g_free, and *@pos. @what:
 * words for people; NULL: none. *@has_no_window: a flight recorder leaves its window out.
 * False: *errp. */
bool tt_incident_report(const char *what, char **mark, uint64_t *pos, bool *has_no_window,
                        Error **errp);
/* The same place got @mark already: the group is to know. */
void tt_incident_tell_group(const char *mark, const char *what);

#endif
