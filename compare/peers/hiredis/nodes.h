/* The nodes of a cluster, and which of them has a key; or the one server. */
#ifndef NODES_H
#define NODES_H

#include "load.h"
#include <hiredis/hiredis.h>

extern unsigned node_count;
extern struct node { char host[64]; int port; } nodes[64];

#define STRING_OF(text) #text
#define DOTTED(major, minor, patch) STRING_OF(major) "." STRING_OF(minor) "." STRING_OF(patch)
#define VERSION DOTTED(HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH)

/* A connection, or the end. */
redisContext *dial(const char *host, int port);

/* Asks the cluster; ends the process if there is none. */
void learn_nodes(const struct options *options);

/* The index of a key's node. */
unsigned node_of(const struct options *options, const char *key);

/* What a reply is to the operation. */
enum outcome load_judge(const struct options *options, struct operation operation, const redisReply *reply);

#endif
