/* Nanoseconds of processor time, user and system, of all children of this
   process that have ended and been waited for; negative if unknown. */
#include <stdint.h>
#include <sys/resource.h>

int64_t redis_client_tool_children_cpu_nanos(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_CHILDREN, &usage) != 0)
		return -1;
	return ((int64_t)usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000
		+ ((int64_t)usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}
