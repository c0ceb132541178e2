/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program of which test_compare.py builds two versions: the new one (-DNEW) writes
 * another fourth line, and removes its file.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef NEW
enum { FOURTH = 30 };
#else
enum { FOURTH = 3 };
#endif

int main(int argc, char **argv)
{
    int fd = open(argv[1], O_CREAT | O_RDWR, 0600);
    char line[64];

    for (int i = 0; i < 5; i++) {
        int n = snprintf(line, sizeof(line), "line %d\n", i == 3 ? FOURTH : i);

        if (write(fd, line, n) != n) {
            return 1;
        }
    }
    if (fork() == 0) {
        write(fd, "the child's\n", 12);
        _exit(0);
    }
    wait(NULL);
#ifdef NEW
    unlink(argv[1]);
#endif
    return close(fd);
}
