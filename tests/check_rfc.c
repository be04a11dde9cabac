/*
 * The demands of RFC 9110 and 9112 that can be seen on the wire, in their order: bytes in, and
 * the exact bytes that come back, but for the date. Every answer is also read strictly (strict.h),
 * so that no row can ask for one that is not well-formed. What a head or a body may be in all its
 * variants is for check_request and check_body; here is the whole answer, once a section. (More
 * than 400 lines, because the table of the RFCs' demands is one.)
 */

#include <string.h>

#include "base/buf.h"
#include "support/client.h"
#include "support/lone.h"
#include "support/strict.h"
#include "support/suite.h"
#include "support/text.h"

#define CONFIG                                                                               \
    "routes = ("                                                                             \
    " { path = \"/hello\" text = \"Hello\" },"                                               \
    " { path = \"/post\" text = \"posted\" methods = [ \"GET\", \"POST\" ] },"               \
    " { path = \"/put\" text = \"put\" methods = [ \"PUT\" ] },"                             \
    " { path = \"/late\" text = \"late\" delay = \"5ms\" methods = [ \"GET\", \"POST\" ] }," \
    " { path = \"/blank\" text = \"\" },"                                                    \
    " { path = \"/none\" text = \"\" status = 204 },"                                        \
    " { path = \"/reset\" text = \"\" status = 205 },"                                       \
    " { path = \"/same\" text = \"\" status = 304 },"                                        \
    " { path = \"/tag\" text = \"tag\""                                                      \
    "   headers = { ETag = \"\\\"a\\\"\"  X = \"y\"  Vary = \"Z\" } },"                      \
    " { path = \"/dated\" text = \"dated\" methods = [ \"GET\", \"POST\" ]"                  \
    "   headers = { Last-Modified = \"Sun, 06 Nov 1994 08:49:37 GMT\" } },"                  \
    " { path = \"/odd\" text = \"odd\" status = 299 },"                                      \
    " { path = \"/login\" text = \"who?\" status = 401"                                      \
    "   headers = { WWW-Authenticate = \"Basic realm=\\\"a\\\"\" } },"                       \
    " { path = \"/old\" redirect = \"/hello#top\" },"                                        \
    " { path = \"/moved\" redirect = \"https://b/c?d\" status = 301 },"                      \
    " { path = \"/found\" redirect = \"/hello\" status = 302 },"                             \
    " { path = \"/other\" redirect = \"/hello\" status = 303 },"                             \
    " { path = \"/here\" redirect = \"/hello\" status = 307 },"                              \
    " { path = \"/last\" text = \"last\" } )\n"                                              \
    "limits = { body = 1000 header = 512 }\n"

/* Requests. */
#define A "Host: a\r\n"
#define END A "\r\n"
#define G "GET /hello HTTP/1.1\r\n"
#define GET G END
#define P "POST /post HTTP/1.1\r\n" A
#define FIVE "Content-Length: 5\r\n\r\n12345"
#define CHUNKED "Transfer-Encoding: chunked\r\n\r\n"
#define CONTINUE "Expect: 100-continue\r\n"
#define SINCE "If-Modified-Since: "
#define UNLESS "If-Unmodified-Since: "
#define THEN "Sun, 06 Nov 1994 08:49:37 GMT\r\n"
#define BEFORE "Sun, 06 Nov 1994 08:49:36 GMT\r\n"
#define X50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X600 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50

/* Answers. */
#define DATE "Date: *\r\n"
#define TYPE "Content-Type: text/plain\r\n"
#define ANSWER(status, fields, length, body) \
    "HTTP/1.1 " status "\r\n" DATE TYPE fields "Content-Length: " length "\r\n\r\n" body
#define LAST(status, length, body)                                \
    "HTTP/1.1 " status "\r\n" DATE TYPE "Content-Length: " length \
    "\r\nConnection: close\r\n\r\n" body
#define HELLO ANSWER("200 OK", "", "5", "Hello")
#define HELLO_LAST LAST("200 OK", "5", "Hello")
#define POSTED ANSWER("200 OK", "", "6", "posted")
#define LATE ANSWER("200 OK", "", "4", "late")
#define BAD LAST("400 Bad Request", "16", "400 Bad Request\n")
#define NOT_FOUND ANSWER("404 Not Found", "", "14", "404 Not Found\n")
#define NOT_FOUND_LAST LAST("404 Not Found", "14", "404 Not Found\n")
#define NOT_ALLOWED(allow) \
    ANSWER("405 Method Not Allowed", "Allow: " allow "\r\n", "23", "405 Method Not Allowed\n")
#define OPTIONS(allow) "HTTP/1.1 204 No Content\r\n" DATE "Allow: " allow "\r\n\r\n"
#define MISDIRECTED ANSWER("421 Misdirected Request", "", "24", "421 Misdirected Request\n")
#define NOT_IMPLEMENTED LAST("501 Not Implemented", "20", "501 Not Implemented\n")
#define TOO_LARGE LAST("413 Content Too Large", "22", "413 Content Too Large\n")
#define TO(status, location, length) \
    ANSWER(status, "Location: " location "\r\n", length, status "\n")
#define FAILED ANSWER("412 Precondition Failed", "", "24", "412 Precondition Failed\n")
#define FAILED_LAST LAST("412 Precondition Failed", "24", "412 Precondition Failed\n")
#define TAG ANSWER("200 OK", "ETag: \"a\"\r\nX: y\r\nVary: Z\r\n", "3", "tag")
#define TAG_SAME "HTTP/1.1 304 Not Modified\r\n" DATE "ETag: \"a\"\r\nVary: Z\r\n\r\n"
#define DATED ANSWER("200 OK", "Last-Modified: " THEN, "5", "dated")
#define DATED_SAME "HTTP/1.1 304 Not Modified\r\n" DATE "\r\n"
#define READING "GET, HEAD, OPTIONS"
#define EVERYTHING "GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH"

enum end {
    OPEN,  /* the connection goes on: the next request is answered */
    CLOSE, /* announced in the last answer; nothing that follows is answered */
    DROP,  /* closed without that, as the fault came after the answer, and nothing is answered */
    HALF,  /* the client ends its side; all answers come, and then the end */
};

struct row {
    const char *section;
    const char *sent;
    const char *more; /* sent when the first answer is there; NULL: nothing */
    const char *answers;
    enum end end;
};

static const struct row rows[] = {
    /* RFC 9110. 2: conformance; 4: identifiers */
    { "9110 2.5", "GET /hello HTTP/1.2\r\n" END, NULL, HELLO, OPEN },
    { "9110 2.5", "GET /hello HTTP/2.0\r\n" END, NULL,
      LAST("505 HTTP Version Not Supported", "63",
           "505 HTTP Version Not Supported: only HTTP/1.1 and HTTP/1.0 are\n"),
      CLOSE },
    { "9110 4.2.1", "GET http:///hello HTTP/1.1\r\n" END, NULL, BAD, CLOSE },
    { "9110 4.2.3", "GET http://A:80/%68ello HTTP/1.1\r\n" END, NULL, HELLO, OPEN },
    { "9110 4.2.4", "GET http://u@a/hello HTTP/1.1\r\n" END, NULL, BAD, CLOSE },

    /* 5: fields */
    { "9110 5.1", G A "No-Such-Field: \x80\"\r\n\r\n", NULL, HELLO, OPEN },
    { "9110 5.3", G A "X: y\r\nHost: b\r\n\r\n", NULL, BAD, CLOSE },
    { "9110 5.3", G A "Connection: x\r\nX: y\r\nConnection: close\r\n\r\n", NULL, HELLO_LAST,
      CLOSE },
    { "9110 5.4", G A "X: " X600 "\r\n\r\n", NULL,
      LAST("431 Request Header Fields Too Large", "36", "431 Request Header Fields Too Large\n"),
      CLOSE },
    { "9110 5.5", G A "Connection: \t close\t \r\n\r\n", NULL, HELLO_LAST, CLOSE },
    { "9110 5.5", G A "X: a\x7f\r\n\r\n", NULL, BAD, CLOSE },
    { "9110 5.6.1.2", G A "Connection: ,\t, close ,,\r\n\r\n", NULL, HELLO_LAST, CLOSE },
    { "9110 5.6.1.2", P "Expect: , 100-continue,\r\n" FIVE, NULL, POSTED, OPEN },
    { "9110 5.6.3", P CHUNKED "1 ; a = b\r\nx\r\n0\r\n\r\n", NULL, POSTED, OPEN },
    { "9110 5.6.4", P CHUNKED "1;a=\"\\\"\r\nx\r\n\"\r\nx\r\n0\r\n\r\n", NULL, BAD, CLOSE },

    /* 6: messages */
    { "9110 6.2", "GET /hello HTTP/1.0\r\n\r\n", NULL, HELLO_LAST, CLOSE },
    { "9110 6.5.1", P CHUNKED "0\r\nConnection: close\r\nContent-Length: 9\r\n\r\n", NULL, POSTED,
      OPEN },
    { "9110 6.6.1", "GET /none HTTP/1.1\r\n" END, NULL, "HTTP/1.1 204 No Content\r\n" DATE "\r\n",
      OPEN },
    { "9110 6.6.1", "GET /same HTTP/1.1\r\n" END, NULL, "HTTP/1.1 304 Not Modified\r\n" DATE "\r\n",
      OPEN },

    /* 7: routing */
    { "9110 7.1", "GET * HTTP/1.1\r\n" END, NULL, BAD, CLOSE },
    { "9110 7.1", "GET a:80 HTTP/1.1\r\n" END, NULL, BAD, CLOSE },
    { "9110 7.4", "GET https://a/hello HTTP/1.1\r\n" END, NULL, MISDIRECTED, OPEN },
    { "9110 7.4", "GET https://a/nowhere HTTP/1.1\r\n" END, NULL, MISDIRECTED, OPEN },
    { "9110 7.4", "OPTIONS HTTPS://a HTTP/1.1\r\n" END, NULL, MISDIRECTED, OPEN },
    { "9110 7.4", "POST https://a/post HTTP/1.1\r\n" A FIVE, NULL, MISDIRECTED, OPEN },
    { "9110 7.4", "POST https://a/post HTTP/1.1\r\n" A CONTINUE "Content-Length: 5\r\n\r\n", NULL,
      LAST("421 Misdirected Request", "24", "421 Misdirected Request\n"), CLOSE },
    { "9110 7.4", "HEAD https://a/hello HTTP/1.1\r\n" END, NULL,
      ANSWER("421 Misdirected Request", "", "24", ""), OPEN },
    { "9110 7.6.1", G A "Connection: closed, \"close\", not-close\r\n\r\n", NULL, HELLO, OPEN },
    { "9110 7.6.1", G A "Connection: Host, CLOSE\r\n\r\n", NULL, HELLO_LAST, CLOSE },
    { "9110 7.6.2", "OPTIONS /hello HTTP/1.1\r\nMax-Forwards: 0\r\n" END, NULL, OPTIONS(READING),
      OPEN },
    { "9110 7.6.3", G A "Via: 1.0 a, 1.1 b\r\n\r\n", NULL, HELLO, OPEN },
    { "9110 7.8",
      G A "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings:\r\n\r\n", NULL,
      HELLO, OPEN },
    { "9110 7.8", "GET /hello HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: HTTP/1.1\r\n\r\n", NULL,
      HELLO_LAST, CLOSE },
    { "9110 7.8", P "Connection: Upgrade\r\nUpgrade: x\r\n" CONTINUE "Content-Length: 5\r\n\r\n",
      "12345", "HTTP/1.1 100 Continue\r\n\r\n" POSTED, OPEN },

    /* 8: representations */
    { "9110 8.4", P "Content-Encoding: no-such-coding\r\n" FIVE, NULL, POSTED, OPEN },
    { "9110 8.6", "GET /blank HTTP/1.1\r\n" END, NULL, ANSWER("200 OK", "", "0", ""), OPEN },
    { "9110 8.6", "HEAD /same HTTP/1.1\r\n" END, NULL, "HTTP/1.1 304 Not Modified\r\n" DATE "\r\n",
      OPEN },
    { "9110 8.6", P "Content-Length: 18446744073709551621\r\n\r\n12345", NULL, BAD, CLOSE },
    { "9110 8.6", P "Content-Length: 5, 5\r\n\r\n12345", NULL, BAD, CLOSE },
    { "9110 8.7", P "Content-Location: /none\r\n" FIVE, NULL, POSTED, OPEN },

    /* 9: methods */
    { "9110 9.1", GET, NULL, HELLO, OPEN },
    { "9110 9.1", "BREW /hello HTTP/1.1\r\n" END, NULL, NOT_IMPLEMENTED, CLOSE },
    { "9110 9.1", "get /hello HTTP/1.1\r\n" END, NULL, NOT_IMPLEMENTED, CLOSE },
    { "9110 9.1", "HEAD /put HTTP/1.1\r\n" END, NULL,
      ANSWER("405 Method Not Allowed", "Allow: PUT, OPTIONS\r\n", "23", ""), OPEN },
    { "9110 9.3.1", G A FIVE, NULL, HELLO, OPEN },
    { "9110 9.3.2", "HEAD /hello HTTP/1.1\r\n" END, NULL, ANSWER("200 OK", "", "5", ""), OPEN },
    { "9110 9.3.2", "HEAD /late HTTP/1.1\r\n" END, NULL, ANSWER("200 OK", "", "4", ""), OPEN },
    { "9110 9.3.2", "HEAD /blank HTTP/1.1\r\n" END, NULL, ANSWER("200 OK", "", "0", ""), OPEN },
    { "9110 9.3.2", "HEAD /none HTTP/1.1\r\n" END, NULL, "HTTP/1.1 204 No Content\r\n" DATE "\r\n",
      OPEN },
    { "9110 9.3.2", "HEAD /old?a HTTP/1.1\r\n" END, NULL,
      ANSWER("308 Permanent Redirect", "Location: /hello?a#top\r\n", "23", ""), OPEN },
    { "9110 9.3.2", "HEAD /nowhere HTTP/1.1\r\n" END, NULL, ANSWER("404 Not Found", "", "14", ""),
      OPEN },
    { "9110 9.3.2", "HEAD /hello HTTP/1.1\r\n\r\n", NULL, LAST("400 Bad Request", "16", ""),
      CLOSE },
    { "9110 9.3.2", "HEAD /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", NULL,
      "HTTP/1.1 200 OK\r\n" DATE TYPE "Content-Length: 5\r\nConnection: keep-alive\r\n\r\n", OPEN },
    { "9110 9.3.2", "HEAD /hello HTTP/1.1\r\n" A "Content-Length: 1001\r\n\r\n", NULL,
      LAST("413 Content Too Large", "22", ""), CLOSE },
    { "9110 9.3.4", "PUT /put HTTP/1.1\r\n" A FIVE, NULL, ANSWER("200 OK", "", "3", "put"), OPEN },
    { "9110 9.3.6", "CONNECT a: HTTP/1.1\r\n" END, NULL, BAD, CLOSE },
    { "9110 9.3.6", "CONNECT a:80 HTTP/1.1\r\n" END, NULL, NOT_ALLOWED(EVERYTHING), OPEN },
    { "9110 9.3.7", "OPTIONS /post HTTP/1.1\r\n" END, NULL, OPTIONS("GET, HEAD, POST, OPTIONS"),
      OPEN },
    { "9110 9.3.7", "OPTIONS * HTTP/1.1\r\n" END, NULL, OPTIONS(EVERYTHING), OPEN },
    { "9110 9.3.7", "OPTIONS /nowhere HTTP/1.1\r\n" END, NULL, NOT_FOUND, OPEN },
    { "9110 9.3.8", "TRACE /hello HTTP/1.1\r\n" END, NULL, NOT_ALLOWED(READING), OPEN },

    /* 10: context. Not what follows, but the head alone brings the 100. */
    { "9110 10.1.1", P CONTINUE "Content-Length: 5\r\n\r\n", "12345",
      "HTTP/1.1 100 Continue\r\n\r\n" POSTED, OPEN },
    { "9110 10.1.1", P CONTINUE CHUNKED, "0\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n" POSTED,
      OPEN },
    { "9110 10.1.1", P CONTINUE CHUNKED, "x\r\n", "HTTP/1.1 100 Continue\r\n\r\n" BAD, CLOSE },
    { "9110 10.1.1", P CONTINUE FIVE, NULL, POSTED, OPEN },
    { "9110 10.1.1", P CONTINUE "\r\n", NULL, POSTED, OPEN },
    { "9110 10.1.1", "POST /post HTTP/1.0\r\n" CONTINUE FIVE, NULL, LAST("200 OK", "6", "posted"),
      CLOSE },
    { "9110 10.1.1", "POST /nowhere HTTP/1.1\r\n" A CONTINUE "Content-Length: 5\r\n\r\n", NULL,
      NOT_FOUND_LAST, CLOSE },
    { "9110 10.1.1", P CONTINUE "Content-Length: 1001\r\n\r\n", NULL, TOO_LARGE, CLOSE },
    { "9110 10.1.1", P CONTINUE "If-Match: \"x\"\r\nContent-Length: 5\r\n\r\n", NULL, FAILED_LAST,
      CLOSE },
    { "9110 10.1.1", P CONTINUE "If-None-Match: *\r\n" CHUNKED, NULL, FAILED_LAST, CLOSE },
    { "9110 10.1.1", P CONTINUE "If-Match: *\r\nContent-Length: 5\r\n\r\n", "12345",
      "HTTP/1.1 100 Continue\r\n\r\n" POSTED, OPEN },
    { "9110 10.1.1", "GET /tag HTTP/1.1\r\n" A CONTINUE "If-None-Match: \"a\"\r\n" CHUNKED,
      "0\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n" TAG_SAME, OPEN },
    { "9110 10.1.1",
      "POST /late HTTP/1.1\r\n" A CONTINUE "If-Match: \"x\"\r\nContent-Length: 5\r\n\r\n", NULL,
      FAILED_LAST, CLOSE },
    { "9110 10.1.1",
      "POST /dated HTTP/1.1\r\n" A CONTINUE UNLESS BEFORE "Content-Length: 5\r\n\r\n", NULL,
      FAILED_LAST, CLOSE },
    { "9110 10.1.1", P "Expect: tea\r\n\r\n", NULL,
      ANSWER("417 Expectation Failed", "", "23", "417 Expectation Failed\n"), OPEN },
    { "9110 10.1.1", P "Expect: tea\r\n" FIVE, NULL,
      LAST("417 Expectation Failed", "23", "417 Expectation Failed\n"), CLOSE },
    { "9110 10.2.1", "POST /hello HTTP/1.1\r\n" END, NULL, NOT_ALLOWED(READING), OPEN },
    { "9110 10.2.1", "DELETE /put HTTP/1.1\r\n" END, NULL, NOT_ALLOWED("PUT, OPTIONS"), OPEN },
    { "9110 10.2.2", "GET /old HTTP/1.1\r\n" END, NULL,
      TO("308 Permanent Redirect", "/hello#top", "23"), OPEN },
    { "9110 10.2.2", "GET /moved?e HTTP/1.1\r\n" END, NULL,
      TO("301 Moved Permanently", "https://b/c?d&e", "22"), OPEN },

    /* 11: authentication; 12: negotiation. There is one representation, whatever is preferred. */
    { "9110 11.6.1", "GET /login HTTP/1.1\r\n" END, NULL,
      ANSWER("401 Unauthorized", "WWW-Authenticate: Basic realm=\"a\"\r\n", "4", "who?"), OPEN },
    { "9110 12.4.2", G A "Accept: text/html;q=1.000, */*;q=0\r\n\r\n", NULL, HELLO, OPEN },
    { "9110 12.5.3", G A "Accept-Encoding: gzip;q=0.5, identity;q=0\r\n\r\n", NULL, HELLO, OPEN },
    { "9110 12.5.4", G A "Accept-Language: *;q=0\r\n\r\n", NULL, HELLO, OPEN },

    /* 13: conditions; /tag and /dated have validators, /hello has none */
    { "9110 13.1.1", G A "If-Match: *\r\n\r\n", NULL, HELLO, OPEN },
    { "9110 13.1.1", G A "If-Match: \"a\"\r\n\r\n", NULL, FAILED, OPEN },
    { "9110 13.1.1", P "If-Match: \"a\"\r\n" FIVE, NULL, FAILED, OPEN },
    { "9110 13.1.1", "GET /tag HTTP/1.1\r\n" A "If-Match: \"b\", \"a\"\r\n\r\n", NULL, TAG, OPEN },
    { "9110 13.1.1", "GET /tag HTTP/1.1\r\n" A "If-Match: W/\"a\"\r\n\r\n", NULL, FAILED, OPEN },
    { "9110 13.1.1", "HEAD /tag HTTP/1.1\r\n" A "If-Match: \"b\"\r\n\r\n", NULL,
      ANSWER("412 Precondition Failed", "", "24", ""), OPEN },
    { "9110 13.1.2", G A "If-None-Match: \"a\", W/\"b\"\r\n\r\n", NULL, HELLO, OPEN },
    { "9110 13.1.2", G A "If-None-Match: *\r\n\r\n", NULL,
      "HTTP/1.1 304 Not Modified\r\n" DATE "\r\n", OPEN },
    { "9110 13.1.2", P "If-None-Match: *\r\n" FIVE, NULL, FAILED, OPEN },
    { "9110 13.1.2", "GET /tag HTTP/1.1\r\n" A "If-None-Match: \"b\", W/\"a\"\r\n\r\n", NULL,
      TAG_SAME, OPEN },
    { "9110 13.1.2", "HEAD /tag HTTP/1.1\r\n" A "If-None-Match: \"a\"\r\n\r\n", NULL, TAG_SAME,
      OPEN },
    { "9110 13.1.2", "GET /tag HTTP/1.1\r\n" A "If-None-Match: \"b\"\r\n\r\n", NULL, TAG, OPEN },
    { "9110 13.1.3", "GET /dated HTTP/1.1\r\n" A SINCE THEN "\r\n", NULL, DATED_SAME, OPEN },
    { "9110 13.1.3", "GET /dated HTTP/1.1\r\n" A SINCE BEFORE "\r\n", NULL, DATED, OPEN },
    { "9110 13.1.3", "GET /dated HTTP/1.1\r\n" A SINCE THEN "If-None-Match: \"a\"\r\n\r\n", NULL,
      DATED, OPEN },
    { "9110 13.1.3", "GET /dated HTTP/1.1\r\n" A SINCE "yesterday\r\n\r\n", NULL, DATED, OPEN },
    { "9110 13.1.3", "GET /dated HTTP/1.1\r\n" A SINCE THEN SINCE THEN "\r\n", NULL, DATED, OPEN },
    { "9110 13.1.3", "POST /dated HTTP/1.1\r\n" A SINCE THEN FIVE, NULL, DATED, OPEN },
    { "9110 13.1.3", G A SINCE THEN "\r\n", NULL, HELLO, OPEN },
    { "9110 13.1.4", "GET /dated HTTP/1.1\r\n" A UNLESS THEN "\r\n", NULL, DATED, OPEN },
    { "9110 13.1.4", "POST /dated HTTP/1.1\r\n" A UNLESS BEFORE FIVE, NULL, FAILED, OPEN },
    { "9110 13.1.4", "GET /dated HTTP/1.1\r\n" A UNLESS BEFORE "If-Match: *\r\n\r\n", NULL, DATED,
      OPEN },
    { "9110 13.1.4", "GET /dated HTTP/1.1\r\n" A UNLESS "yesterday\r\n\r\n", NULL, DATED, OPEN },
    { "9110 13.1.4", G A UNLESS BEFORE "\r\n", NULL, HELLO, OPEN },
    { "9110 13.1.5", G A "If-Range: \"a\"\r\n\r\n", NULL, HELLO, OPEN },
    { "9110 13.1.5", "GET /tag HTTP/1.1\r\n" A "Range: bytes=0-0\r\nIf-Range: \"a\"\r\n\r\n", NULL,
      TAG, OPEN },
    { "9110 13.2.1", "GET /nowhere HTTP/1.1\r\n" A "If-Match: \"a\"\r\nIf-None-Match: *\r\n\r\n",
      NULL, NOT_FOUND, OPEN },
    { "9110 13.2.1", "GET /old HTTP/1.1\r\n" A "If-None-Match: *\r\n\r\n", NULL,
      TO("308 Permanent Redirect", "/hello#top", "23"), OPEN },
    { "9110 13.2.1", "DELETE /hello HTTP/1.1\r\n" A "If-Match: \"a\"\r\n\r\n", NULL,
      NOT_ALLOWED(READING), OPEN },
    { "9110 13.2.1", "OPTIONS /hello HTTP/1.1\r\n" A "If-Match: \"a\"\r\n\r\n", NULL,
      OPTIONS(READING), OPEN },
    { "9110 13.2.1", P "If-Match: \"a\"\r\nContent-Length: 1001\r\n\r\n", NULL, TOO_LARGE, CLOSE },
    { "9110 13.2.1", P CONTINUE "If-Match: \"a\"\r\nContent-Length: 1001\r\n\r\n", NULL, TOO_LARGE,
      CLOSE },
    { "9110 13.2.1", P "If-Match: \"a\"\r\nContent-Length: 5\r\n\r\n", "12345", FAILED, OPEN },
    { "9110 13.2.1", P "If-Match: \"a\"\r\n" CHUNKED "5\r\n123", "45\r\n0\r\n\r\n", FAILED, OPEN },
    { "9110 13.2.1", P "If-Match: \"a\"\r\n" CHUNKED, "x\r\n", FAILED, DROP },
    { "9110 13.2.1",
      "POST /other HTTP/1.1\r\n" A CONTINUE "If-Match: \"a\"\r\nContent-Length: 5\r\n\r\n", "12345",
      "HTTP/1.1 100 Continue\r\n\r\n" TO("303 See Other", "/hello", "14"), OPEN },
    { "9110 13.2.2", "GET /tag HTTP/1.1\r\n" A "If-None-Match: \"a\"\r\nIf-Match: \"b\"\r\n\r\n",
      NULL, FAILED, OPEN },

    /* 14: ranges, of a server without these */
    { "9110 14.2", G A "Range: bytes=0-0\r\n\r\n", NULL, HELLO, OPEN },
    { "9110 14.2", G A "Range: bytes=99999999999999999999-\r\n\r\n", NULL, HELLO, OPEN },
    { "9110 14.2", G A "Range: lines=1\r\n\r\n", NULL, HELLO, OPEN },
    { "9110 14.2", P "Range: bytes=0-0\r\n" FIVE, NULL, POSTED, OPEN },
    { "9110 14.4", P "Content-Range: bytes 0-4/9\r\n" FIVE, NULL, POSTED, OPEN },

    /* 15: statuses that were not seen yet */
    { "9110 15.2", "POST /late HTTP/1.0\r\nConnection: keep-alive\r\n" CONTINUE FIVE, NULL,
      "HTTP/1.1 200 OK\r\n" DATE TYPE "Content-Length: 4\r\nConnection: keep-alive\r\n\r\nlate",
      OPEN },
    { "9110 15.3.6", "GET /reset HTTP/1.1\r\n" END, NULL,
      "HTTP/1.1 205 Reset Content\r\n" DATE TYPE "Content-Length: 0\r\n\r\n", OPEN },
    { "9110 15.4.3", "GET /found HTTP/1.1\r\n" END, NULL, TO("302 Found", "/hello", "10"), OPEN },
    { "9110 15.4.4", "POST /other HTTP/1.1\r\n" A FIVE, NULL, TO("303 See Other", "/hello", "14"),
      OPEN },
    { "9110 15.4.8", "PUT /here?a HTTP/1.1\r\n" A FIVE, NULL,
      TO("307 Temporary Redirect", "/hello?a", "23"), OPEN },
    { "9110 15.5.5", "GET /hello/ HTTP/1.1\r\n" END, NULL, NOT_FOUND, OPEN },
    { "9110 15.5.14", P "Content-Length: 1001\r\n\r\n", NULL, TOO_LARGE, CLOSE },
    { "9110 15.5.14", P CHUNKED "3e8;a\r\n" X600 X50 X50 X50 X50 X50 X50 X50 X50 "\r\n1\r\n", NULL,
      TOO_LARGE, CLOSE },

    /* RFC 9112. 2: messages */
    { "9112 2.2", "\r\n" GET "\r\n" GET, NULL, HELLO HELLO, OPEN },
    { "9112 2.2", "GET /hello\r HTTP/1.1\r\n" END, NULL, BAD, CLOSE },
    { "9112 2.2", G " " END, NULL, BAD, CLOSE },
    { "9112 2.2", "GET /hello HTTP/1.1\n" A "\n", NULL, BAD, CLOSE },
    { "9112 2.2", GET "\x16\x03\x01\x02", NULL, HELLO BAD, CLOSE },
    { "9112 2.3", "GET /hello HTTP/1.10\r\n" END, NULL, BAD, CLOSE },
    { "9112 2.3", "GET /hello\r\n", NULL, BAD, CLOSE },

    /* 3: the request line */
    { "9112 3", X600 " /hello HTTP/1.1\r\n" END, NULL, NOT_IMPLEMENTED, CLOSE },
    { "9112 3", "GET /" X600 " HTTP/1.1\r\n" END, NULL,
      LAST("414 URI Too Long", "17", "414 URI Too Long\n"), CLOSE },
    { "9112 3.2", "GET /hel lo HTTP/1.1\r\n" END, NULL, BAD, CLOSE },
    { "9112 3.2", G "\r\n", NULL, BAD, CLOSE },
    { "9112 3.2", "GET /hello HTTP/1.9\r\n\r\n", NULL, BAD, CLOSE },
    { "9112 3.2", G A A "\r\n", NULL, BAD, CLOSE },
    { "9112 3.2", G "Host: a b\r\n\r\n", NULL, BAD, CLOSE },
    { "9112 3.2", G "Host:\r\n\r\n", NULL, HELLO, OPEN },
    { "9112 3.2", "GET /hello HTTP/1.0\r\nHost: a b\r\n\r\n", NULL, BAD, CLOSE },
    { "9112 3.2.1", "GET /hello?a=b/../c? HTTP/1.1\r\n" END, NULL, HELLO, OPEN },
    { "9112 3.2.2", "GET http://b.example/hello HTTP/1.1\r\n" END, NULL, HELLO, OPEN },
    { "9112 3.2.2", "GET http://b/hello HTTP/1.0\r\n\r\n", NULL, HELLO_LAST, CLOSE },
    { "9112 3.2.2", "GET http://b/hello HTTP/1.1\r\n\r\n", NULL, BAD, CLOSE },
    { "9112 3.2.3", "CONNECT http://a:80 HTTP/1.1\r\n" END, NULL, BAD, CLOSE },
    { "9112 3.2.4", "OPTIONS http://a HTTP/1.1\r\n" END, NULL, OPTIONS(EVERYTHING), OPEN },

    /* 4: the status line, with its space where there is no reason; 5: field lines */
    { "9112 4", "GET /odd HTTP/1.1\r\n" END, NULL, ANSWER("299 ", "", "3", "odd"), OPEN },
    { "9112 5.1", G "Host : a\r\n\r\n", NULL, BAD, CLOSE },
    { "9112 5.2", G A "X: y\r\n z\r\n\r\n", NULL, BAD, CLOSE },

    /* 6: bodies */
    { "9112 6.1", P CHUNKED "5\r\nGET /\r\n0\r\n\r\n" GET, NULL, POSTED HELLO, OPEN },
    { "9112 6.1", P "Content-Length: 4\r\n" CHUNKED "0\r\n\r\n", NULL, BAD, CLOSE },
    { "9112 6.1", "POST /post HTTP/1.0\r\nConnection: keep-alive\r\n" CHUNKED "0\r\n\r\n", NULL,
      BAD, CLOSE },
    { "9112 6.1", P "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", NULL, NOT_IMPLEMENTED,
      CLOSE },
    { "9112 6.2", P FIVE GET, NULL, POSTED HELLO, OPEN },
    { "9112 6.3", P "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", NULL, BAD, CLOSE },
    { "9112 6.3", P "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", NULL, BAD, CLOSE },
    { "9112 6.3", P "Content-Length: +5\r\n\r\n12345", NULL, BAD, CLOSE },
    { "9112 6.3", P "Content-Length: 4\r\nContent-Length: 5\r\n\r\n12345", NULL, BAD, CLOSE },
    { "9112 6.3", P "\r\n" GET, NULL, POSTED HELLO, OPEN },
    { "9112 6.3", P "Content-Length: 5\r\n\r\n1234", NULL, "", HALF },
    { "9112 6.3", P CHUNKED "5\r\n12345\r\n0\r\n", NULL, "", HALF },
    { "9112 8", GET "GET /hel", NULL, HELLO, HALF },

    /* 7: codings */
    { "9112 7.1", P CHUNKED "10000000000000005\r\n12345\r\n0\r\n\r\n", NULL, BAD, CLOSE },
    { "9112 7.1", P CHUNKED "5\r\n1234567\r\n0\r\n\r\n", NULL, BAD, CLOSE },
    { "9112 7.1", "POST /nowhere HTTP/1.1\r\n" A CHUNKED "5", "x\r\n", NOT_FOUND, DROP },
    { "9112 7.1.1", P CHUNKED "5;a;b=c;d=\"\\\"\"\r\n12345\r\n0;e\r\n\r\n", NULL, POSTED, OPEN },
    { "9112 7.1.2", P CHUNKED "0\r\nHost: b\r\nX: y\r\n\r\n", NULL, POSTED, OPEN },
    { "9112 7.1.2", P CHUNKED "0\r\nX : y\r\n\r\n", NULL, BAD, CLOSE },
    { "9112 7.4", G A "Connection: TE\r\nTE: gzip;q=0.5, trailers\r\n\r\n", NULL, HELLO, OPEN },

    /* 9: connections */
    { "9112 9.3", "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", NULL,
      "HTTP/1.1 200 OK\r\n" DATE TYPE "Content-Length: 5\r\nConnection: keep-alive\r\n\r\nHello",
      OPEN },
    { "9112 9.3", "GET /hello HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", NULL, HELLO_LAST,
      CLOSE },
    { "9112 9.3", "POST /hello HTTP/1.1\r\n" A FIVE, NULL, NOT_ALLOWED(READING), OPEN },
    { "9112 9.3", "POST /nowhere HTTP/1.1\r\n" A "Content-Length: 1001\r\n\r\n" GET, NULL,
      NOT_FOUND_LAST, CLOSE },
    { "9112 9.3.2", "GET /late HTTP/1.1\r\n" END GET "GET /nowhere HTTP/1.1\r\n" END GET, NULL,
      LATE HELLO NOT_FOUND HELLO, OPEN },
    { "9112 9.3.2", "HEAD /late HTTP/1.1\r\n" END GET, NULL, ANSWER("200 OK", "", "4", "") HELLO,
      OPEN },
    { "9112 9.6", G A "Connection: close\r\n\r\n" GET, NULL, HELLO_LAST, CLOSE },
    { "9112 9.6", "POST /late HTTP/1.1\r\nConnection: close\r\n" A FIVE GET, NULL,
      LAST("200 OK", "4", "late"), CLOSE },
    { "9112 9.6", "GET /same HTTP/1.1\r\nConnection: close\r\n" END, NULL,
      "HTTP/1.1 304 Not Modified\r\n" DATE "Connection: close\r\n\r\n", CLOSE },
    { "9112 9.6", "GET /late HTTP/1.1\r\n" END, NULL, LATE, HALF },
    { "9112 C.2.2", "GET /hello HTTP/1.0\r\nProxy-Connection: keep-alive\r\n\r\n", NULL, HELLO_LAST,
      CLOSE },
};

/* Asks for the end: where the connection goes on, this closes it. */
#define SENTINEL "GET /last HTTP/1.1\r\n" A "Connection: close\r\n\r\n"
#define SENTINEL_ANSWER LAST("200 OK", "4", "last")

static bool is_head(const char *sent)
{
    return strncmp(sent, "HEAD ", 5) == 0;
}

/*
 * Reads all answers strictly, and gives them back with "*" for their dates. Only the first that is
 * no 100 may be to a HEAD. `is_announced`: the last, and no other, says that it is the last.
 */
static const char *judge(struct slice bytes, bool is_head, bool is_announced)
{
    struct buf all = { 0 };
    while (bytes.length > 0) {
        struct strict answer;
        strict_read(&answer, bytes, is_head);
        ck_assert_msg(!answer.fault, "%s:\n%s", answer.fault, text_copy(bytes.data, bytes.length));
        size_t before = answer.date.length > 0 ? (size_t)(answer.date.data - bytes.data) : 0;
        size_t after = before + answer.date.length;
        buf_add(&all, bytes.data, before);
        buf_add_string(&all, answer.date.length > 0 ? "*" : "");
        buf_add(&all, bytes.data + after, answer.all.length - after);
        bytes.data += answer.all.length;
        bytes.length -= answer.all.length;
        bool is_last = is_announced && bytes.length == 0;
        ck_assert_msg(answer.is_last == is_last, "Connection: close is %s:\n%s",
                      is_last ? "missing" : "there", buf_string(&all));
        is_head = is_head && answer.status < 200;
    }
    const char *text = text_copy(all.data ? all.data : "", all.length);
    buf_fini(&all);
    return text;
}

/* All that the server sends till it closes. */
static struct slice talk(struct client *client, const struct row *row, struct buf *all)
{
    struct reply reply;
    client_send(client, row->sent);
    if (row->more) {
        enum client_result result = client_receive(client, &reply, is_head(row->sent));
        ck_assert_msg(result == CLIENT_REPLY, "%s", client->fault);
        buf_add_slice(all, reply.head);
        buf_add_slice(all, reply.body);
        client_send(client, row->more);
    }
    if (row->end == HALF)
        client_end(client);
    else
        client_send(client, SENTINEL);
    struct slice rest = client_read_rest(client);
    ck_assert_msg(rest.data, "%s", client->fault);
    buf_add_slice(all, rest);
    return buf_slice(all);
}

START_TEST(answers_are_to_the_letter)
{
    const struct row *row = &rows[_i];
    struct lone lone;
    struct client client;
    struct buf all = { 0 };
    lone_start(&lone, &(struct lone_options){ .config = CONFIG });
    client_open(&client, lone.url);
    bool is_announced = row->end == OPEN || row->end == CLOSE;
    const char *answers = judge(talk(&client, row, &all), is_head(row->sent), is_announced);
    const char *wanted = text_format("%s%s", row->answers, row->end == OPEN ? SENTINEL_ANSWER : "");
    ck_assert_msg(strcmp(answers, wanted) == 0, "%s: %s\ngives\n%s\nnot\n%s", row->section,
                  row->sent, answers, wanted);
    buf_fini(&all);
    client_close(&client);
    lone_leave(&lone);
}
END_TEST

/* What comes when the client waits: of a request that is not whole, and of one that never was. */
static const struct row slow_rows[] = {
    { "9112 9.5", "", NULL, "", DROP },
    { "9112 9.5", GET, NULL, HELLO, DROP },
    { "9110 15.5.9", "GET /hello HT", NULL,
      LAST("408 Request Timeout", "20", "408 Request Timeout\n"), CLOSE },
    { "9110 15.5.9", P "Content-Length: 5\r\n\r\n1234", NULL,
      LAST("408 Request Timeout", "20", "408 Request Timeout\n"), CLOSE },
    { "9110 10.1.1", P CONTINUE "Content-Length: 5\r\n\r\n", NULL,
      "HTTP/1.1 100 Continue\r\n\r\n" LAST("408 Request Timeout", "20", "408 Request Timeout\n"),
      CLOSE },
    { "9110 9.3.2", "HEAD ", NULL, LAST("408 Request Timeout", "20", ""), CLOSE },
    { "9110 9.3.2", "HEAD /hello HTTP/1.1\r\n" A, NULL, LAST("408 Request Timeout", "20", ""),
      CLOSE },
    { "9110 9.3.2", "HEAD /hello HTTP/1.1\r\n" A "Content-Length: 5\r\n\r\n", NULL,
      LAST("408 Request Timeout", "20", ""), CLOSE },
};

START_TEST(what_is_late_is_answered)
{
    const struct row *row = &slow_rows[_i];
    struct lone lone;
    struct client client;
    lone_start(&lone,
               &(struct lone_options){
                   .config = CONFIG
                   "timeouts = { header = \"200ms\" body = \"200ms\" idle = \"200ms\" }\n" });
    client_open(&client, lone.url);
    client_send(&client, row->sent);
    struct slice all = client_read_rest(&client);
    ck_assert_msg(all.data, "%s", client.fault);
    const char *answers = judge(all, is_head(row->sent), row->end == CLOSE);
    ck_assert_msg(strcmp(answers, row->answers) == 0, "%s: %s\ngives\n%s\nnot\n%s", row->section,
                  row->sent, answers, row->answers);
    client_close(&client);
    lone_leave(&lone);
}
END_TEST

/* A reader that forgives would let every row pass: what it must not forgive. */
#define D "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
static const struct {
    const char *bytes, *fault; /* NULL: none */
    bool is_head;
} reader_rows[] = {
    { "HTTP/1.1 200 OK\r\n" D TYPE "Content-Length: 1\r\n\r\na", NULL, false },
    { "HTTP/1.1 200 \r\n" D "Content-Length: 0\r\nConnection: close\r\n\r\n", NULL, false },
    { "HTTP/1.1 200 OK\r\n" D TYPE "Content-Length: 1\r\n\r\n", NULL, true },
    { "HTTP/1.1 204 No Content\r\n" D "\r\n", NULL, false },
    { "HTTP/1.1 100 Continue\r\n\r\n", NULL, false },
    { "HTTP/1.1 100 Continue\r\n" D "\r\n", "fields in a 100", false },
    { "HTTP/1.1 200\r\n" D "Content-Length: 0\r\n\r\n", "status line", false },
    { "HTTP/1.0 200 OK\r\n" D "Content-Length: 0\r\n\r\n", "status line", false },
    { "HTTP/1.1 20 OK\r\n" D "Content-Length: 0\r\n\r\n", "status line", false },
    { "HTTP/1.1 200 OK\n" D "Content-Length: 0\r\n\r\n", "status line", false },
    { "HTTP/1.1 200 OK\r\n" D "Content-Length: 0\r\n", "without an end", false },
    { "HTTP/1.1 200 OK\r\n" D "Content-Length : 0\r\n\r\n", "field line", false },
    { "HTTP/1.1 200 OK\r\n" D "Content-Length: 0\r\n a\r\n\r\n", "field line", false },
    { "HTTP/1.1 200 OK\r\n" D "Content-Length: 0\r\nX: a\n\r\n", "field line", false },
    { "HTTP/1.1 200 OK\r\n" D "Content-Length: 0\r\nX: a \r\n\r\n", "field line", false },
    { "HTTP/1.1 200 OK\r\n" D D "Content-Length: 0\r\n\r\n", "twice", false },
    { "HTTP/1.1 200 OK\r\n" D "Content-Length: 0\r\ncontent-length: 0\r\n\r\n", "twice", false },
    { "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "no Date", false },
    { "HTTP/1.1 200 OK\r\nDate: Mon, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n\r\n",
      "IMF-fixdate", false },
    { "HTTP/1.1 200 OK\r\nDate: Sun, 6 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n\r\n",
      "IMF-fixdate", false },
    { "HTTP/1.1 200 OK\r\nDate: Sunday, 06-Nov-94 08:49:37 GMT\r\nContent-Length: 0\r\n\r\n",
      "IMF-fixdate", false },
    { "HTTP/1.1 200 OK\r\n" D "\r\n", "Content-Length is missing", false },
    { "HTTP/1.1 200 OK\r\n" D "Content-Length: +0\r\n\r\n", "no number", false },
    { "HTTP/1.1 200 OK\r\n" D TYPE "Content-Length: 2\r\n\r\na", "less content", false },
    { "HTTP/1.1 200 OK\r\n" D "Content-Length: 1\r\n\r\na", "without a Content-Type", false },
    { "HTTP/1.1 205 Reset Content\r\n" D TYPE "Content-Length: 1\r\n\r\na", "205", false },
    { "HTTP/1.1 204 No Content\r\n" D "Content-Length: 0\r\n\r\n", "where no content", false },
    { "HTTP/1.1 200 OK\r\n" D "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "has Transfer-Encoding", false },
    { "HTTP/1.1 405 Method Not Allowed\r\n" D "Content-Length: 0\r\n\r\n", "no Allow", false },
    { "HTTP/1.1 405 Method Not Allowed\r\n" D "Allow: GET,,PUT\r\nContent-Length: 0\r\n\r\n",
      "no list", false },
    { "HTTP/1.1 200 OK\r\n" D "Content-Length: 0\r\nConnection: closed\r\n\r\n", "something else",
      false },
};

START_TEST(the_reader_is_strict)
{
    struct strict answer;
    strict_read(&answer, slice_of(reader_rows[_i].bytes), reader_rows[_i].is_head);
    if (!reader_rows[_i].fault) {
        ck_assert_msg(!answer.fault, "%s: %s", answer.fault, reader_rows[_i].bytes);
        ck_assert_uint_eq(answer.all.length, strlen(reader_rows[_i].bytes));
    } else {
        ck_assert_msg(answer.fault && strstr(answer.fault, reader_rows[_i].fault), "%s: %s",
                      answer.fault ? answer.fault : "no fault", reader_rows[_i].bytes);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rfc");
    TCase *tests = suite_case(suite, "rfc");
    tcase_add_loop_test(tests, answers_are_to_the_letter, 0, SUITE_ROWS(rows));
    tcase_add_loop_test(tests, what_is_late_is_answered, 0, SUITE_ROWS(slow_rows));
    tcase_add_loop_test(tests, the_reader_is_strict, 0, SUITE_ROWS(reader_rows));
    return suite_run(suite);
}
