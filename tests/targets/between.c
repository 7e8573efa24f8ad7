/* Stands between a tool and its agent (LD_PRELOAD, for the tool): one message on the control socket is not as it was sent.
   BETWEEN="KIND AT MS": garbled, truncated, repeated and delayed are of the AT-th that the tool writes, version of the agent's greeting. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static atomic_long written, read_so_far;

/* Whether a descriptor is one end of that socket: who has accepted it has its name. */
static int is_control(int fd) {
    struct sockaddr_un name;
    socklen_t length = sizeof name;
    memset(&name, 0, sizeof name);
    if (getsockname(fd, (struct sockaddr *)&name, &length) != 0 || name.sun_family != AF_UNIX) {
        return 0;
    }
    size_t end = strnlen(name.sun_path, sizeof name.sun_path);
    return end >= 8 && memcmp(name.sun_path + end - 8, "/control", 8) == 0;
}

static int wanted(char kind[16], long *at, long *ms) {
    const char *between = getenv("BETWEEN");
    return between != NULL && sscanf(between, "%15s %ld %ld", kind, at, ms) == 3;
}

static ssize_t pass(int fd, const void *bytes, size_t length) {
    static ssize_t (*next)(int, const void *, size_t, int);
    if (next == NULL) {
        next = (ssize_t (*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");
    }
    return next(fd, bytes, length, MSG_NOSIGNAL);
}

static ssize_t between(int fd, const void *bytes, size_t length) {
    char kind[16];
    long at, ms;
    if (!wanted(kind, &at, &ms) || atomic_fetch_add(&written, 1) + 1 != at) {
        return pass(fd, bytes, length);
    }
    if (strcmp(kind, "garbled") == 0) {
        unsigned char *garbled = malloc(length);
        memcpy(garbled, bytes, length);
        for (size_t i = 0; i < length && i < 8; i++) {
            garbled[i] ^= (unsigned char)(ms >> i);
        }
        ssize_t sent = pass(fd, garbled, length);
        free(garbled);
        return sent;
    }
    if (strcmp(kind, "truncated") == 0) {
        pass(fd, bytes, length / 2);
        shutdown(fd, SHUT_RDWR);
        return (ssize_t)length;
    }
    if (strcmp(kind, "delayed") == 0) {
        usleep((useconds_t)ms * 1000);
    }
    if (strcmp(kind, "repeated") == 0 && pass(fd, bytes, length) != (ssize_t)length) {
        return (ssize_t)length;
    }
    return pass(fd, bytes, length);
}

ssize_t send(int fd, const void *bytes, size_t length, int flags) {
    static ssize_t (*next)(int, const void *, size_t, int);
    if (next == NULL) {
        next = (ssize_t (*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");
    }
    return is_control(fd) ? between(fd, bytes, length) : next(fd, bytes, length, flags);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    static ssize_t (*next)(int, const void *, size_t);
    if (next == NULL) {
        next = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    }
    return is_control(fd) ? between(fd, bytes, length) : next(fd, bytes, length);
}

ssize_t recv(int fd, void *bytes, size_t length, int flags) {
    static ssize_t (*next)(int, void *, size_t, int);
    if (next == NULL) {
        next = (ssize_t (*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");
    }
    ssize_t got = next(fd, bytes, length, flags);
    char kind[16];
    long at, ms;
    if (got > 0 && is_control(fd) && wanted(kind, &at, &ms) && strcmp(kind, "version") == 0) {
        long before = atomic_fetch_add(&read_so_far, got);
        /* Four bytes of length, one that says that there is a greeting, then the version. */
        if (before <= 5 && before + got > 5) {
            ((unsigned char *)bytes)[5 - before] ^= 0x40;
        }
    }
    return got;
}
