#include "support/site.h"

#include "support/json.h"
#include "support/suite.h"
#include "support/text.h"

#define ROUTES                                                  \
    "routes = ( { path = \"/hello\" text = \"Hello\" },\n"      \
    "{ path = \"/slow\" text = \"Slow\" delay = \"500ms\" },\n" \
    "{ path = \"/never\" text = \"Never\" delay = \"1h\" },\n"  \
    "{ path = \"/post\" text = \"Post\" methods = [ \"POST\" ] } )\n"

#define FAULTY_ROUTES                                      \
    "routes = ( { path = \"/hello\" text = \"Hello\" },\n" \
    "{ path = \"/never\" text = \"Never\" delay = \"1h\" }%s )\n"

void site_start(struct server *server, const char *more)
{
    server_start(server,
                 &(struct server_options){ .config = text_format(SERVER_BASE ROUTES "%s", more) });
}

void site_start_faulty(struct server *server, const char *routes, const char *more)
{
    const char *all = text_replace(FAULTY_ROUTES, "%s", routes);

    server_start(server,
                 &(struct server_options){ .config = text_format(SERVER_BASE "%s%s", all, more) });
}

double site_counter(const struct server *server, const char *name)
{
    return json_number(json_get(server_status(server), name));
}

pid_t site_await_successor(const struct server *server, unsigned worker, pid_t dead)
{
    pid_t pid = server_await_worker(server, worker, dead);
    WAIT_FOR(client_get(server->url, "/hello", NULL) == 200);
    return pid;
}

void site_open_in_flight(struct client *client, const struct server *server, const char *request)
{
    struct reply reply;

    client_open(client, server->url);
    client_send(client, text_format(GET "%s", request));
    client_expect(client, &reply, 200);
}

void *site_send(void *sender)
{
    struct site_sender *from = sender;

    return client_send_bytes(from->client, from->text, from->length) ? sender : NULL;
}
