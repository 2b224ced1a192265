/* Compares bytes within an array of the heap with bytes outside it. Called unsafely, so
   that the array stays where it is. */
#include <stddef.h>
#include <string.h>

int redis_client_compare_at(const char *array, ptrdiff_t offset, const char *bytes, size_t size)
{
	return memcmp(array + offset, bytes, size);
}
