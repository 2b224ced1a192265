/* In the place of redis_client_tls.c where the library is built without OpenSSL: there
   is no context, so there never is a session, and only the first function is called. */
#include <stdio.h>
#include "HsFFI.h"

#define REASON 256
#define FAILED (-3)

struct context;
struct session;

struct context *redis_client_tls_context(int verify, const char *authorities, const char *certificate, const char *key, char *reason)
{
	(void)verify, (void)authorities, (void)certificate, (void)key;
	snprintf(reason, REASON, "this redis-client was built without TLS (its flag openssl is off)");
	return NULL;
}

void redis_client_tls_context_free(struct context *context) { (void)context; }

struct session *redis_client_tls_new(struct context *context, int fd, const char *name, int verify)
{
	(void)context, (void)fd, (void)name, (void)verify;
	return NULL;
}

void redis_client_tls_shutdown(struct session *session) { (void)session; }

void redis_client_tls_free(struct session *session) { (void)session; }

HsInt redis_client_tls_handshake(struct session *session) { (void)session; return FAILED; }

HsInt redis_client_tls_read(struct session *session, HsWord8 *to, HsInt size)
{
	(void)session, (void)to, (void)size;
	return FAILED;
}

HsInt redis_client_tls_write(struct session *session, const HsWord8 *from, HsInt size)
{
	(void)session, (void)from, (void)size;
	return FAILED;
}

const char *redis_client_tls_read_reason(const struct session *session) { (void)session; return ""; }

const char *redis_client_tls_write_reason(const struct session *session) { (void)session; return ""; }
