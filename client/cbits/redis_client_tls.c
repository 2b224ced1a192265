/* TLS by OpenSSL, as attempts on a non-blocking socket.

   An SSL object must not be used by two threads at once, and one thread reads
   while another writes. So each attempt holds the session's mutex, for the
   time of the attempt only: nobody waits for the network while holding it.
   An attempt handles at most ATTEMPT bytes, which bounds how long the other
   side, and whoever waits for this foreign call, can be held up.

   OpenSSL leaves its errors in a queue of the operating system's thread, and a
   Haskell thread may be on another one at its next call. So the queue is
   emptied before and read after each operation within the same call, and the
   reason is left in memory that belongs to that direction of the session.

   The results are those of Redis.Internal.Network.Transport. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include "HsFFI.h"

#define END 0
#define WOULD_READ (-1)
#define WOULD_WRITE (-2)
#define FAILED (-3)
/* The same, and it is the connection that is broken. */
#define BROKEN (-4)
/* The same, and the peer has said that this client's certificate will not do. */
#define REFUSED (-5)

#define ATTEMPT 65536
#define REASON 256

struct session {
	SSL *ssl;
	pthread_mutex_t mutex;
	char read_reason[REASON];
	char write_reason[REASON];
};

static void explain_queue(char *reason)
{
	unsigned long first = ERR_peek_error();
	unsigned long code = ERR_peek_last_error();
	const char *text = code == 0 ? NULL : ERR_reason_error_string(code);
	/* A file that cannot be opened: the last one says "system lib". */
	if (ERR_GET_LIB(first) == ERR_LIB_SYS)
		snprintf(reason, REASON, "%s", strerror(ERR_GET_REASON(first)));
	/* What OpenSSL says of a record that begins as none does. */
	else if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER)
		snprintf(reason, REASON, "what the peer answers is not TLS; for plain text it is redis://, without setTls (%s)", text == NULL ? "" : text);
	else if (text != NULL)
		snprintf(reason, REASON, "%s", text);
	else if (code != 0)
		ERR_error_string_n(code, reason, REASON);
	else
		snprintf(reason, REASON, "unknown error");
}

/* What an alert says of the client's certificate; NULL if it is none, or about something else. In TLS 1.3
   the client's handshake is over before the server has judged the certificate, so this may be the
   answer to the first read. */
static const char *refused_certificate(void)
{
	unsigned long code = ERR_peek_last_error();
	if (ERR_GET_LIB(code) != ERR_LIB_SSL)
		return NULL;
	switch (ERR_GET_REASON(code) - SSL_AD_REASON_OFFSET) {
	case SSL_AD_CERTIFICATE_REQUIRED:
		return "the server demands a client certificate, and this client has none";
	case SSL_AD_BAD_CERTIFICATE:
	case SSL_AD_UNSUPPORTED_CERTIFICATE:
	case SSL_AD_CERTIFICATE_REVOKED:
	case SSL_AD_CERTIFICATE_EXPIRED:
	case SSL_AD_CERTIFICATE_UNKNOWN:
	case SSL_AD_UNKNOWN_CA:
	case SSL_AD_ACCESS_DENIED:
		return "the server does not accept the client certificate";
	default:
		return NULL;
	}
}

/* A password on a key would otherwise be asked for at the terminal. */
static int no_password(char *memory, int size, int writing, void *data)
{
	(void)memory, (void)size, (void)writing, (void)data;
	return -1;
}

/* What all sessions of a client share; NULL where a file cannot be used, with
   the reason, of REASON bytes. Any file may be NULL: the authorities are then
   the system's, and there is no client certificate. */
SSL_CTX *redis_client_tls_context(int verify, const char *authorities,
                                  const char *certificate, const char *key, char *reason)
{
	SSL_CTX *context;
	const char *what = "cannot prepare TLS", *file = NULL;

	ERR_clear_error();
	context = SSL_CTX_new(TLS_client_method());
	if (context == NULL)
		goto failed;
	if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1)
		goto failed;
	SSL_CTX_set_verify(context, verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
	SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION);
#ifdef SSL_OP_NO_RENEGOTIATION
	/* So a writer never has to wait for something to read. */
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
#endif
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	/* One system call for many records, instead of two for each. */
	SSL_CTX_set_read_ahead(context, 1);
	SSL_CTX_set_default_read_buffer_len(context, ATTEMPT);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_default_passwd_cb(context, no_password);

	if (authorities != NULL) {
		what = "cannot use the file of authorities ";
		file = authorities;
		if (SSL_CTX_load_verify_locations(context, authorities, NULL) != 1)
			goto failed;
	} else if (verify) {
		what = "cannot use the system's authorities";
		if (SSL_CTX_set_default_verify_paths(context) != 1)
			goto failed;
	}
	if (certificate != NULL) {
		what = "cannot use the client certificate ";
		file = certificate;
		if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
			goto failed;
		what = "cannot use the client key ";
		file = key;
		if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1
		    || SSL_CTX_check_private_key(context) != 1)
			goto failed;
	}
	return context;

failed:
	{
		char queue[REASON];
		explain_queue(queue);
		snprintf(reason, REASON, "%s%.120s: %.90s", what, file == NULL ? "" : file, queue);
	}
	SSL_CTX_free(context);
	ERR_clear_error();
	return NULL;
}

void redis_client_tls_context_free(SSL_CTX *context)
{
	SSL_CTX_free(context);
}

/* A session over a connected socket, which it does not own. An address in
   `name` is verified as an address and not sent; any other name is sent (SNI)
   and verified. A NULL name is neither. NULL if the name is not usable. */
struct session *redis_client_tls_new(SSL_CTX *context, int fd, const char *name, int verify)
{
	struct session *session = calloc(1, sizeof *session);
	if (session == NULL)
		return NULL;
	ERR_clear_error();
	session->ssl = SSL_new(context);
	if (session->ssl == NULL || SSL_set_fd(session->ssl, fd) != 1)
		goto failed;
	if (name != NULL) {
		X509_VERIFY_PARAM *parameters = SSL_get0_param(session->ssl);
		ASN1_OCTET_STRING *address = a2i_IPADDRESS(name);
		if (address != NULL) {
			ASN1_OCTET_STRING_free(address);
			if (verify && X509_VERIFY_PARAM_set1_ip_asc(parameters, name) != 1)
				goto failed;
		} else {
			ERR_clear_error();
			/* An empty name would switch the check off. */
			if (*name == '\0' || SSL_set_tlsext_host_name(session->ssl, name) != 1)
				goto failed;
			/* A common name counts for nothing, also where there is no other name. */
			X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
			if (verify && X509_VERIFY_PARAM_set1_host(parameters, name, 0) != 1)
				goto failed;
		}
	}
	SSL_set_connect_state(session->ssl);
	pthread_mutex_init(&session->mutex, NULL);
	return session;

failed:
	SSL_free(session->ssl);
	free(session);
	ERR_clear_error();
	return NULL;
}

/* Sends the parting message, if the kernel takes it at once and no record is
   half sent. Whether it arrives concerns nobody. */
void redis_client_tls_shutdown(struct session *session)
{
	pthread_mutex_lock(&session->mutex);
	ERR_clear_error();
	SSL_shutdown(session->ssl);
	ERR_clear_error();
	pthread_mutex_unlock(&session->mutex);
}

void redis_client_tls_free(struct session *session)
{
	SSL_free(session->ssl);
	pthread_mutex_destroy(&session->mutex);
	free(session);
}

const char *redis_client_tls_read_reason(const struct session *session)
{
	return session->read_reason;
}

const char *redis_client_tls_write_reason(const struct session *session)
{
	return session->write_reason;
}

/* What a call that did not succeed came to. */
static HsInt outcome(SSL *ssl, int result, int number, char *reason)
{
	long verified;
	const char *refused;

	switch (SSL_get_error(ssl, result)) {
	case SSL_ERROR_WANT_READ:
		return WOULD_READ;
	case SSL_ERROR_WANT_WRITE:
		return WOULD_WRITE;
	case SSL_ERROR_ZERO_RETURN:
		snprintf(reason, REASON, "closed by the peer");
		return END;
	case SSL_ERROR_SYSCALL:
		if (number == 0) {
			snprintf(reason, REASON, "closed by the peer");
			return END;
		}
		snprintf(reason, REASON, "%s", strerror(number));
		return BROKEN;
	default:
#ifdef SSL_R_UNEXPECTED_EOF_WHILE_READING
		/* Without the parting message. Whether replies are missing is
		   seen from the replies, so it is an end like any other. */
		if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
			snprintf(reason, REASON, "closed by the peer");
			return END;
		}
#endif
		refused = refused_certificate();
		if (refused != NULL) {
			snprintf(reason, REASON, "%s (%s)", refused, ERR_reason_error_string(ERR_peek_last_error()));
			return REFUSED;
		}
		verified = SSL_get_verify_result(ssl);
		if (verified != X509_V_OK && SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE)
			snprintf(reason, REASON, "certificate verify failed: %s",
			         X509_verify_cert_error_string(verified));
		else
			explain_queue(reason);
		return FAILED;
	}
}

/* 1: done. The only call that computes for longer (about a millisecond). */
HsInt redis_client_tls_handshake(struct session *session)
{
	HsInt answer = 1;
	int result;

	pthread_mutex_lock(&session->mutex);
	ERR_clear_error();
	errno = 0;
	result = SSL_do_handshake(session->ssl);
	if (result != 1)
		answer = outcome(session->ssl, result, errno, session->read_reason);
	ERR_clear_error();
	pthread_mutex_unlock(&session->mutex);
	return answer;
}

/* A record holds at most 16 KiB; so as many records as have arrived, without
   another system call once those that came with the last one are used up. */
HsInt redis_client_tls_read(struct session *session, char *memory, HsInt size)
{
	HsInt total = 0, answer = 0;

	if (size > ATTEMPT)
		size = ATTEMPT;
	pthread_mutex_lock(&session->mutex);
	do {
		int result;
		ERR_clear_error();
		errno = 0;
		result = SSL_read(session->ssl, memory + total, (int)(size - total));
		if (result <= 0) {
			answer = outcome(session->ssl, result, errno, session->read_reason);
			ERR_clear_error();
			break;
		}
		total += result;
	} while (total < size && SSL_has_pending(session->ssl));
	pthread_mutex_unlock(&session->mutex);
	/* What ended the loop is found again by the next attempt. */
	return total > 0 ? total : answer;
}

/* As many records as the kernel takes. The record it did not take is kept by
   OpenSSL, made from the bytes that follow those reported as written; the
   caller comes back with them, as it must. */
HsInt redis_client_tls_write(struct session *session, const char *memory, HsInt size)
{
	HsInt total = 0, answer = 0;

	if (size > ATTEMPT)
		size = ATTEMPT;
	pthread_mutex_lock(&session->mutex);
	do {
		int result;
		ERR_clear_error();
		errno = 0;
		result = SSL_write(session->ssl, memory + total, (int)(size - total));
		if (result <= 0) {
			answer = outcome(session->ssl, result, errno, session->write_reason);
			ERR_clear_error();
			if (answer == END)
				answer = FAILED;
			break;
		}
		total += result;
	} while (total < size);
	pthread_mutex_unlock(&session->mutex);
	return total > 0 ? total : answer;
}
