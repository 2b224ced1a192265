/* Attempts on a non-blocking socket.

   Why C: the flags differ between systems, an interrupted call is repeated
   without a round through Haskell, and the result says in one word what
   happened: a number of bytes, or one of the numbers below, which are those of
   Redis.Internal.Network.Transport. errno is set when it is FAILED. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include "HsFFI.h"

#define WOULD_READ (-1)
#define WOULD_WRITE (-2)
#define FAILED (-3)

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

HsInt redis_client_recv(int fd, void *memory, HsInt size)
{
	for (;;) {
		ssize_t n = recv(fd, memory, (size_t)size, MSG_DONTWAIT);
		if (n >= 0)
			return n;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return WOULD_READ;
		if (errno != EINTR)
			return FAILED;
	}
}

HsInt redis_client_send(int fd, const void *memory, HsInt size)
{
	for (;;) {
		ssize_t n = send(fd, memory, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n >= 0)
			return n;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return WOULD_WRITE;
		if (errno != EINTR)
			return FAILED;
	}
}

/* Whether the peer has ended the connection, whatever can still be read. */
int redis_client_hung_up(int fd)
{
#ifdef POLLRDHUP
	struct pollfd one = {.fd = fd, .events = POLLRDHUP};
	return poll(&one, 1, 0) > 0 && (one.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
#else
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
#endif
}

/* Waits until so many bytes are there, or for so many microseconds: the low
   water mark keeps the kernel from waking us for each of them. It is one byte
   again afterwards, whatever comes, so that nothing else ever waits for more
   than one. Where the mark has no effect this returns early. */
void redis_client_gather(int fd, HsInt bytes, HsInt micros)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};
	struct timespec limit = {.tv_sec = 0, .tv_nsec = (long)micros * 1000};
	int mark = (int)bytes;

	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark);
#ifdef __linux__
	(void)ppoll(&one, 1, &limit, NULL);
#else
	(void)one;
	(void)limit;
#endif
	mark = 1;
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark);
}

/* Starts to connect. 0: connected; 1: under way; otherwise the negated errno. */
int redis_client_connect(int fd, const void *address, int size)
{
	if (connect(fd, address, (socklen_t)size) == 0)
		return 0;
	/* An interrupted connect goes on by itself, as one under way does. */
	if (errno == EINPROGRESS || errno == EINTR)
		return 1;
	return -errno;
}

/* Both directions. Errors are of no interest: the peer may have gone. */
void redis_client_shutdown(int fd)
{
	shutdown(fd, SHUT_RDWR);
}

/* A connection to a closed port on the same machine may pick that very port as
   its own and meet itself (simultaneous open). */
int redis_client_meets_itself(int fd)
{
	struct sockaddr_storage here, there;
	socklen_t here_size = sizeof here, there_size = sizeof there;
	memset(&here, 0, sizeof here);
	memset(&there, 0, sizeof there);
	if (getsockname(fd, (struct sockaddr *)&here, &here_size) != 0
	    || getpeername(fd, (struct sockaddr *)&there, &there_size) != 0)
		return 0;
	if (here.ss_family != there.ss_family)
		return 0;
	if (here.ss_family == AF_INET) {
		struct sockaddr_in *a = (struct sockaddr_in *)&here;
		struct sockaddr_in *b = (struct sockaddr_in *)&there;
		return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
	}
	if (here.ss_family == AF_INET6) {
		struct sockaddr_in6 *a = (struct sockaddr_in6 *)&here;
		struct sockaddr_in6 *b = (struct sockaddr_in6 *)&there;
		return a->sin6_port == b->sin6_port
		       && memcmp(&a->sin6_addr, &b->sin6_addr, sizeof a->sin6_addr) == 0;
	}
	return 0;
}

static void option(int fd, int level, int name, int value)
{
	setsockopt(fd, level, name, &value, sizeof value);
}

/* TCP options; idle and unacknowledged are 0 where not wanted. What the system
   does not know or refuses is left as it was: a connection without it works. */
void redis_client_tune_tcp(int fd, int idle_seconds, int unacknowledged_millis)
{
	option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (idle_seconds > 0) {
		int interval = idle_seconds >= 3 ? idle_seconds / 3 : 1;
		option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
#if defined(TCP_KEEPIDLE)
		option(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle_seconds);
#elif defined(TCP_KEEPALIVE)
		option(fd, IPPROTO_TCP, TCP_KEEPALIVE, idle_seconds);
#endif
#ifdef TCP_KEEPINTVL
		option(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval);
#endif
#ifdef TCP_KEEPCNT
		option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
#endif
		(void)interval;
	}
#ifdef TCP_USER_TIMEOUT
	if (unacknowledged_millis > 0)
		option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, unacknowledged_millis);
#else
	(void)unacknowledged_millis;
#endif
}
