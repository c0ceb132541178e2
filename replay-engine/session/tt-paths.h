/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of files, as the user gives them and as they are shown.
 *
 * Context, unless said otherwise: the BQL is held.
 */
#ifndef TT_PATHS_H
#define TT_PATHS_H

/* Where a QEMU was started that has left it since, a daemonized one; else NULL. */
const char *tt_start_directory(void);
/* Of a name that is relative, from there or from where we are. g_free. */
char *tt_path_absolute(const char *path);
/* Would @path, which need not exist, lie in the directory of a run? */
bool tt_path_is_outside(const char *path, Error **errp);
/* Control characters are '?' in it: names go to terminals. Interned. */
const char *tt_printable(const char *text);

#endif
