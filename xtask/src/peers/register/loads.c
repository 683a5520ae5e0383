/* What a plain loop of volatile loads costs: the lower bound that `keepup register read ram` is held to.
   loads DEPTH...: for each depth its number, and ns for each register, the median of many trials. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 0x200000, TRIALS = 201, TRIAL_WORDS_MIN = 1000 };

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int by_size(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(int count, char **depths) {
    int file = memfd_create("loads", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, BYTES) != 0) return perror("memory"), 1;
    volatile uint32_t *base = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (base == MAP_FAILED) return perror("mmap"), 1;
    for (size_t word = 0; word < BYTES / 4; word++) base[word] = (uint32_t)word * 2654435761u;
    for (int index = 1; index < count; index++) {
        unsigned long depth = strtoul(depths[index], NULL, 0);
        if (depth == 0 || depth > BYTES / 4) return fprintf(stderr, "depth %s\n", depths[index]), 1;
        unsigned long repeats = (TRIAL_WORDS_MIN + depth - 1) / depth;
        static double each[TRIALS];
        for (int trial = 0; trial < TRIALS; trial++) {
            uint64_t begin_ns = now_ns();
            for (unsigned long repeat = 0; repeat < repeats; repeat++)
                for (unsigned long word = 0; word < depth; word++) (void)base[word];
            each[trial] = (double)(now_ns() - begin_ns) / (double)(repeats * depth);
        }
        qsort(each, TRIALS, sizeof each[0], by_size);
        printf("%lu %.6f\n", depth, each[TRIALS / 2]);
    }
    return 0;
}
