/*
 * vme_window BASE SIZE: opens slave window s0 and master window m0 on the same addresses of a VME bus (A32, single
 * cycles, 32 bits wide), so that what is written to m0 goes over the bus into s0's memory.
 *
 * Structures and numbers are those of drivers/staging/vme_user/vme_user.h, Linux 6.1. They are part of no header that
 * programs get, and a shell cannot make the calls.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

struct slave {
	uint32_t enable;
	uint64_t vme_addr;
	uint64_t size;
	uint32_t aspace;
	uint32_t cycle;
} __attribute__((packed));

struct master {
	struct slave window;
	uint32_t dwidth;
} __attribute__((packed));

#define VME_SET_SLAVE _IOW(0xAE, 2, struct slave)
#define VME_SET_MASTER _IOW(0xAE, 4, struct master)
#define VME_A32 0x4
#define VME_SCT_USER_DATA (0x1 | 0x2000 | 0x8000)
#define VME_D32 0x4

static int set(const char *device, unsigned long call, const void *window)
{
	int file = open(device, O_RDWR);

	if (file >= 0 && ioctl(file, call, window) == 0)
		return 0;
	perror(device);
	return 1;
}

int main(int count, char **words)
{
	struct master master = {{1, 0, 0, VME_A32, VME_SCT_USER_DATA}, VME_D32};

	if (count != 3) {
		fprintf(stderr, "usage: vme_window BASE SIZE\n");
		return 2;
	}
	master.window.vme_addr = strtoull(words[1], NULL, 0);
	master.window.size = strtoull(words[2], NULL, 0);
	return set("/dev/bus/vme/s0", VME_SET_SLAVE, &master.window) ||
	       set("/dev/bus/vme/m0", VME_SET_MASTER, &master);
}
