/*
 * The heads of requests: bytes in, outcome, and the section that rules. Every row is also fed with
 * a split at every byte, byte by byte, and with the next request behind it: the outcome is the
 * same. (More than 400 lines, because the table of the RFCs' demands is one.)
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "http/request.h"
#include "support/suite.h"
#include "support/text.h"

/*
 * Outcomes: "more"; a status; or, of what is accepted, method, path (and query), host, version,
 * what becomes of the connection, framing, expectations, and the scheme if it is https: "GET /a?b
 * host 1.1 keep none".
 */
struct row {
    const char *section;
    const char *bytes;
    size_t length;
    const char *outcome;
};
#define ROW(section, bytes, outcome)               \
    {                                              \
        section, bytes, sizeof(bytes) - 1, outcome \
    }

#define A "Host: a\r\n"
#define END A "\r\n"
#define OK "GET / a 1.1 keep none"

static const struct row line_rows[] = {
    ROW("9112 3", "GET / HTTP/1.1\r\n" END, OK),
    ROW("9112 3", "", "more"),
    ROW("9112 3", "GET / HTTP/1.1\r\n" A, "more"),
    ROW("9112 3", "GET / HTTP/1.1\r\n" A "\r", "more"),
    /* empty lines before it */
    ROW("9112 2.2", "\r\nGET / HTTP/1.1\r\n" END, OK),
    ROW("9112 2.2", "\r\n", "more"),
    ROW("9112 2.2", "\r\n\r\nGET / HTTP/1.1\r\n" END, "400"),
    ROW("9112 2.2", "\nGET / HTTP/1.1\r\n" END, "400"),
    ROW("9112 2.2", "\rGET / HTTP/1.1\r\n" END, "400"),
    ROW("9112 2.2", " \r\nGET / HTTP/1.1\r\n" END, "400"),
    /* whitespace */
    ROW("9112 3", " GET / HTTP/1.1\r\n" END, "400"),
    ROW("9112 3", "GET  / HTTP/1.1\r\n" END, "400"),
    ROW("9112 3", "GET /  HTTP/1.1\r\n" END, "400"),
    ROW("9112 3", "GET / HTTP/1.1 \r\n" END, "400"),
    ROW("9112 3", "GET\t/ HTTP/1.1\r\n" END, "400"),
    ROW("9112 3", "GET /\tHTTP/1.1\r\n" END, "400"),
    ROW("9112 3", "GET /\x0b HTTP/1.1\r\n" END, "400"),
    ROW("9112 3", "GET / a HTTP/1.1\r\n" END, "400"),
    /* line ends */
    ROW("9112 2.2", "GET / HTTP/1.1\n" END, "400"),
    ROW("9112 2.2", "GET / HTTP/1.1\r" END, "400"),
    ROW("9112 2.2", "GET / HTTP/1.1\r\r\n" END, "400"),
    ROW("9112 2.2", "GET /\r HTTP/1.1\r\n" END, "400"),
    ROW("9112 2.2", "GET /\n HTTP/1.1\r\n" END, "400"),
    ROW("9112 2.2", "GET\r\n / HTTP/1.1\r\n" END, "400"),
    /* methods */
    ROW("9110 9.1", "get / HTTP/1.1\r\n" END, "501"),
    ROW("9110 9.1", "GETT / HTTP/1.1\r\n" END, "501"),
    ROW("9110 9.1", "GE / HTTP/1.1\r\n" END, "501"),
    ROW("9110 9.1", "QUERY / HTTP/1.1\r\n" END, "501"),
    ROW("9110 9.1", "!#$%&'*+-.^_`|~09azAZ / HTTP/1.1\r\n" END, "501"),
    ROW("9110 9.1", "G\0T / HTTP/1.1\r\n" END, "400"),
    ROW("9110 9.1", "G@T / HTTP/1.1\r\n" END, "400"),
    ROW("9110 9.1", "G\xc3\x89T / HTTP/1.1\r\n" END, "400"),
    ROW("9110 9.1", "(GET) / HTTP/1.1\r\n" END, "400"),
    ROW("9110 9.1", "HEAD / HTTP/1.1\r\n" END, "HEAD / a 1.1 keep none"),
    ROW("9110 9.1", "POST / HTTP/1.1\r\n" END, "POST / a 1.1 keep none"),
    ROW("9110 9.1", "PUT / HTTP/1.1\r\n" END, "PUT / a 1.1 keep none"),
    ROW("9110 9.1", "DELETE / HTTP/1.1\r\n" END, "DELETE / a 1.1 keep none"),
    ROW("9110 9.1", "OPTIONS / HTTP/1.1\r\n" END, "OPTIONS / a 1.1 keep none"),
    ROW("9110 9.1", "TRACE / HTTP/1.1\r\n" END, "TRACE / a 1.1 keep none"),
    ROW("5789 2", "PATCH / HTTP/1.1\r\n" END, "PATCH / a 1.1 keep none"),
    /* versions */
    ROW("9112 2.3", "GET / HTTP/1.0\r\n\r\n", "GET /  1.0 close none"),
    ROW("9110 2.5", "GET / HTTP/1.2\r\n" END, OK),
    ROW("9110 2.5", "GET / HTTP/1.9\r\n" END, OK),
    ROW("9110 2.5", "GET / HTTP/2.0\r\n" END, "505"),
    ROW("9110 2.5", "GET / HTTP/2.0\r\n\r\n", "505"),
    ROW("9110 2.5", "GET / HTTP/3.1\r\n\r\n", "505"),
    ROW("9110 2.5", "GET / HTTP/9.9\r\n\r\n", "505"),
    ROW("9112 2.3", "GET / HTTP/0.9\r\n" END, "400"),
    ROW("9112 2.3", "GET / HTTP/0.0\r\n" END, "400"),
    ROW("9112 2.3", "GET / http/1.1\r\n" END, "400"),
    ROW("9112 2.3", "GET / Http/1.1\r\n" END, "400"),
    ROW("9112 2.3", "GET / HTTP/1\r\n" END, "400"),
    ROW("9112 2.3", "GET / HTTP/1.\r\n" END, "400"),
    ROW("9112 2.3", "GET / HTTP/.1\r\n" END, "400"),
    ROW("9112 2.3", "GET / HTTP/11\r\n" END, "400"),
    ROW("9112 2.3", "GET / HTTP/1.10\r\n" END, "400"),
    ROW("9112 2.3", "GET / HTTP/1.01\r\n" END, "400"),
    ROW("9112 2.3", "GET / HTTP/01.1\r\n" END, "400"),
    ROW("9112 2.3", "GET / HTTP/10.1\r\n" END, "400"),
    ROW("9112 2.3", "GET / HTTP/1,1\r\n" END, "400"),
    ROW("9112 2.3", "GET / HTTP/1.x\r\n" END, "400"),
    ROW("9112 2.3", "GET / HTTP/-1.1\r\n" END, "400"),
    ROW("9112 2.3", "GET / HTTPS/1.1\r\n" END, "400"),
    ROW("9112 2.3", "GET / HTTP 1.1\r\n" END, "400"),
    ROW("9112 2.3", "GET / ICE/1.0\r\n" END, "400"),
    ROW("9112 2.3", "GET / RTSP/1.0\r\n" END, "400"),
    ROW("9112 2.3", "GET / \r\n" END, "400"),
    ROW("9112 3", "GET /\r\n", "400"),
    ROW("9112 3", "GET / \r\n", "400"),
    ROW("9112 3", "GET\r\n\r\n", "400"),
    ROW("9112 3", "GET \r\n\r\n", "400"),
    /* other protocols */
    ROW("9113 3.4", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400"),
    ROW("8446 4.1.2", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400"),
    ROW("4253 4.2", "SSH-2.0-OpenSSH_9.2\r\n", "400"),
    ROW("9112 4", "HTTP/1.1 200 OK\r\n\r\n", "400"),
    ROW("5321 4.1", "EHLO example.com\r\n", "400"),
    ROW("9112 3", "\0\0\0\0", "400"),
    /* order of refusals */
    ROW("order", "FOO / HTTP/2.0\r\n\r\n", "505"),
    ROW("order", "FOO / HTTP/2.0\r\nA b: c\r\n\r\n", "400"),
    ROW("order", "FOO / HTTP/1.1\r\nA b: c\r\n\r\n", "400"),
    ROW("order", "FOO / HTTP/1.1\r\n\r\n", "501"),
    ROW("order", "FOO / HTTP/1.1\r\n" A "Content-Length: x\r\n\r\n", "501"),
    ROW("order", "GET / HTTP/2.0\r\n" A "Content-Length: x\r\n\r\n", "505"),
    ROW("order", "FOO /\x7f HTTP/2.0\r\n\r\n", "400"),
};

static const struct row target_rows[] = {
    ROW("9112 3.2.1", "GET /a/b/c HTTP/1.1\r\n" END, "GET /a/b/c a 1.1 keep none"),
    ROW("9112 3.2.1", "GET /a?b HTTP/1.1\r\n" END, "GET /a?b a 1.1 keep none"),
    ROW("9112 3.2.1", "GET /a? HTTP/1.1\r\n" END, "GET /a? a 1.1 keep none"),
    ROW("9112 3.2.1", "GET /? HTTP/1.1\r\n" END, "GET /? a 1.1 keep none"),
    ROW("3986 3.4", "GET /a?b?c/../d HTTP/1.1\r\n" END, "GET /a?b?c/../d a 1.1 keep none"),
    ROW("3986 3.4", "GET /a?%41%2f HTTP/1.1\r\n" END, "GET /a?%41%2f a 1.1 keep none"),
    ROW("9112 3.2.1", "GET // HTTP/1.1\r\n" END, "GET // a 1.1 keep none"),
    ROW("9112 3.2.1", "GET //b/c HTTP/1.1\r\n" END, "GET //b/c a 1.1 keep none"),
    ROW("9112 3.2.1", "GET /a/ HTTP/1.1\r\n" END, "GET /a/ a 1.1 keep none"),
    ROW("9112 3.2.1", "GET /* HTTP/1.1\r\n" END, "GET /* a 1.1 keep none"),
    ROW("3986 3.3", "GET /-._~!$&'()*+,;=:@ HTTP/1.1\r\n" END,
        "GET /-._~!$&'()*+,;=:@ a 1.1 keep none"),
    ROW("9112 3.2.1", "GET a HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.1", "GET ?a HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.1", "GET ./a HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.1", "GET #a HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.1", "GET \\a HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.1", "GET %2Fa HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2", "GET /a#b HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2", "GET /a?b#c HTTP/1.1\r\n" END, "400"),
    ROW("3986 2", "GET /a\"b HTTP/1.1\r\n" END, "400"),
    ROW("3986 2", "GET /<a> HTTP/1.1\r\n" END, "400"),
    ROW("3986 2", "GET /a\\b HTTP/1.1\r\n" END, "400"),
    ROW("3986 2", "GET /a^b HTTP/1.1\r\n" END, "400"),
    ROW("3986 2", "GET /a`b HTTP/1.1\r\n" END, "400"),
    ROW("3986 2", "GET /{a} HTTP/1.1\r\n" END, "400"),
    ROW("3986 2", "GET /a|b HTTP/1.1\r\n" END, "400"),
    ROW("3986 2", "GET /[a] HTTP/1.1\r\n" END, "400"),
    ROW("3986 2", "GET /a?[b] HTTP/1.1\r\n" END, "400"),
    ROW("3986 2", "GET /\xc3\xa9 HTTP/1.1\r\n" END, "400"),
    ROW("3986 2", "GET /\x80 HTTP/1.1\r\n" END, "400"),
    ROW("3986 2", "GET /\x7f HTTP/1.1\r\n" END, "400"),
    ROW("3986 2", "GET /\0 HTTP/1.1\r\n" END, "400"),
    /* escapes */
    ROW("3986 2.1", "GET /%41%7a%7E HTTP/1.1\r\n" END, "GET /Az~ a 1.1 keep none"),
    ROW("3986 6.2.2", "GET /%2f%3f%c3%a9 HTTP/1.1\r\n" END, "GET /%2F%3F%C3%A9 a 1.1 keep none"),
    ROW("3986 2.1", "GET /%00 HTTP/1.1\r\n" END, "GET /%00 a 1.1 keep none"),
    ROW("3986 2.1", "GET /%0d%0A HTTP/1.1\r\n" END, "GET /%0D%0A a 1.1 keep none"),
    ROW("3986 2.1", "GET /%25%34%31 HTTP/1.1\r\n" END, "GET /%2541 a 1.1 keep none"),
    ROW("3986 2.1", "GET /% HTTP/1.1\r\n" END, "400"),
    ROW("3986 2.1", "GET /%4 HTTP/1.1\r\n" END, "400"),
    ROW("3986 2.1", "GET /%%41 HTTP/1.1\r\n" END, "400"),
    ROW("3986 2.1", "GET /%4g HTTP/1.1\r\n" END, "400"),
    ROW("3986 2.1", "GET /%u0041 HTTP/1.1\r\n" END, "400"),
    ROW("3986 2.1", "GET /a?b=% HTTP/1.1\r\n" END, "400"),
    ROW("3986 2.1", "GET /a?b=%zz HTTP/1.1\r\n" END, "400"),
    /* dots */
    ROW("3986 5.2.4", "GET /a/../b HTTP/1.1\r\n" END, "GET /b a 1.1 keep none"),
    ROW("3986 5.2.4", "GET /a/%2e%2E/b?c HTTP/1.1\r\n" END, "GET /b?c a 1.1 keep none"),
    ROW("3986 5.2.4", "GET /../../etc/passwd HTTP/1.1\r\n" END, "GET /etc/passwd a 1.1 keep none"),
    /* absolute-form */
    ROW("9112 3.2.2", "GET http://b/c?d HTTP/1.1\r\n" END, "GET /c?d b 1.1 keep none"),
    ROW("9112 3.2.2", "GET https://b/c HTTP/1.1\r\n" END, "GET /c b 1.1 keep none https"),
    ROW("3986 3.1", "GET HTTP://b/c HTTP/1.1\r\n" END, "GET /c b 1.1 keep none"),
    ROW("3986 3.1", "GET hTTpS://b/c HTTP/1.1\r\n" END, "GET /c b 1.1 keep none https"),
    ROW("9110 4.2.3", "GET http://b HTTP/1.1\r\n" END, "GET / b 1.1 keep none"),
    ROW("9110 4.2.3", "GET http://b?c HTTP/1.1\r\n" END, "GET /?c b 1.1 keep none"),
    ROW("9112 3.2.2", "GET http://b:80/ HTTP/1.1\r\n" END, "GET / b:80 1.1 keep none"),
    ROW("3986 3.2.3", "GET http://b:/ HTTP/1.1\r\n" END, "GET / b: 1.1 keep none"),
    ROW("3986 3.2.2", "GET http://[::1]:80/ HTTP/1.1\r\n" END, "GET / [::1]:80 1.1 keep none"),
    ROW("3986 3.2.2", "GET http://[v1.a:b]/ HTTP/1.1\r\n" END, "GET / [v1.a:b] 1.1 keep none"),
    ROW("3986 3.2.2", "GET http://b%41/ HTTP/1.1\r\n" END, "GET / b%41 1.1 keep none"),
    ROW("9112 3.2.2", "GET http://b/a/./../c HTTP/1.1\r\n" END, "GET /c b 1.1 keep none"),
    ROW("9112 3.2.2", "GET http://b/c HTTP/1.0\r\n\r\n", "GET /c b 1.0 close none"),
    ROW("9112 3.2.2", "GET http://b/c HTTP/1.1\r\n\r\n", "400"),
    ROW("9112 3.2.2", "GET http://b/c HTTP/1.1\r\nHost: a b\r\n\r\n", "400"),
    ROW("9112 3.2.2", "GET http://b/c HTTP/1.1\r\nHost:\r\n\r\n", "GET /c b 1.1 keep none"),
    ROW("9110 4.2.1", "GET http:///c HTTP/1.1\r\n" END, "400"),
    ROW("9110 4.2.2", "GET https:///c HTTP/1.1\r\n" END, "400"),
    ROW("9110 4.2.1", "GET http:// HTTP/1.1\r\n" END, "400"),
    ROW("9110 4.2.1", "GET http://?c HTTP/1.1\r\n" END, "400"),
    ROW("9110 4.2.1", "GET http://:80/ HTTP/1.1\r\n" END, "400"),
    ROW("9110 4.2.4", "GET http://u@b/ HTTP/1.1\r\n" END, "400"),
    ROW("9110 4.2.4", "GET http://u:p@b/ HTTP/1.1\r\n" END, "400"),
    ROW("3986 3.2.3", "GET http://b:x/ HTTP/1.1\r\n" END, "400"),
    ROW("3986 3.2.3", "GET http://b:1:2/ HTTP/1.1\r\n" END, "400"),
    ROW("3986 3.2.3", "GET http://b:65536/ HTTP/1.1\r\n" END, "400"),
    ROW("3986 3.2.2", "GET http://[::1/ HTTP/1.1\r\n" END, "400"),
    ROW("3986 3.2.2", "GET http://::1]/ HTTP/1.1\r\n" END, "400"),
    ROW("3986 3.2.2", "GET http://[]/ HTTP/1.1\r\n" END, "400"),
    ROW("3986 3.2.2", "GET http://[1.2.3.4]/ HTTP/1.1\r\n" END, "400"),
    ROW("3986 3.2.2", "GET http://[::1]a/ HTTP/1.1\r\n" END, "400"),
    ROW("6874 2", "GET http://[fe80::1%25eth0]/ HTTP/1.1\r\n" END, "400"),
    ROW("3986 3.2.2", "GET http://b%4/ HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2", "GET http://b#c HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2", "GET http://b/#c HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.2", "GET http:/b/c HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.2", "GET http:b HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.2", "GET httpx://b/ HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.2", "GET ftp://b/c HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.2", "GET host:80 HTTP/1.1\r\n" END, "400"),
    /* authority-form */
    ROW("9112 3.2.3", "CONNECT b:443 HTTP/1.1\r\n" END, "CONNECT  b:443 1.1 keep none"),
    ROW("9112 3.2.3", "CONNECT [::1]:443 HTTP/1.1\r\n" END, "CONNECT  [::1]:443 1.1 keep none"),
    ROW("9110 9.3.6", "CONNECT b HTTP/1.1\r\n" END, "400"),
    ROW("9110 9.3.6", "CONNECT b: HTTP/1.1\r\n" END, "400"),
    ROW("9110 9.3.6", "CONNECT b:0 HTTP/1.1\r\n" END, "400"),
    ROW("9110 9.3.6", "CONNECT b:65536 HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.3", "CONNECT :443 HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.3", "CONNECT / HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.3", "CONNECT b:443/ HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.3", "CONNECT http://b:443 HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.3", "CONNECT u@b:443 HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.3", "CONNECT * HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.3", "GET b:443 HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.3", "GET 127.0.0.1:443 HTTP/1.1\r\n" END, "400"),
    /* asterisk-form */
    ROW("9112 3.2.4", "OPTIONS * HTTP/1.1\r\n" END, "OPTIONS * a 1.1 keep none"),
    ROW("9112 3.2.4", "OPTIONS http://b HTTP/1.1\r\n" END, "OPTIONS * b 1.1 keep none"),
    ROW("9112 3.2.4", "OPTIONS http://b/ HTTP/1.1\r\n" END, "OPTIONS / b 1.1 keep none"),
    ROW("9112 3.2.4", "OPTIONS https://b HTTP/1.1\r\n" END, "OPTIONS * b 1.1 keep none https"),
    ROW("9112 3.2.4", "OPTIONS http://b?c HTTP/1.1\r\n" END, "OPTIONS /?c b 1.1 keep none"),
    ROW("9112 3.2.4", "GET * HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.4", "FOO * HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.4", "OPTIONS *a HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.4", "OPTIONS ** HTTP/1.1\r\n" END, "400"),
    ROW("9112 3.2.4", "OPTIONS *?a HTTP/1.1\r\n" END, "400"),
};

#define G "GET / HTTP/1.1\r\n"

static const struct row field_rows[] = {
    ROW("9112 5", G A "X: y\r\n\r\n", OK),
    ROW("9112 5", G A "X:y\r\n\r\n", OK),
    ROW("9112 5", G A "X:\r\n\r\n", OK),
    ROW("9112 5", G A "X: \t \r\n\r\n", OK),
    ROW("9112 5", G A "X: :\r\n\r\n", OK),
    ROW("9110 5.1", G "hOsT: a\r\n\r\n", OK),
    ROW("9110 5.6.3", G "Host:\t a \t\r\n\r\n", OK),
    ROW("9110 5.1", G A "!#$%&'*+-.^_`|~09azAZ: y\r\n\r\n", OK),
    ROW("9110 5.5", G A "X: a\tb\x80\xff\"\\{}\r\n\r\n", OK),
    ROW("9112 5.1", G A "X : y\r\n\r\n", "400"),
    ROW("9112 5.1", G A "X\t: y\r\n\r\n", "400"),
    ROW("9112 5.1", G "Host : a\r\n\r\n", "400"),
    ROW("9112 5.1", G A "X y: z\r\n\r\n", "400"),
    ROW("9112 5", G A "X\r\n\r\n", "400"),
    ROW("9112 5", G A ": y\r\n\r\n", "400"),
    ROW("9112 5", G A " : y\r\n\r\n", "400"),
    ROW("9112 5", G A "X\0: y\r\n\r\n", "400"),
    ROW("9112 5", G A "X@: y\r\n\r\n", "400"),
    ROW("9112 5", G A "(X): y\r\n\r\n", "400"),
    ROW("9112 5", G A "\"X\": y\r\n\r\n", "400"),
    ROW("9112 5", G A "X\xc3\xa9: y\r\n\r\n", "400"),
    ROW("9112 5.2", G A "X: y\r\n z\r\n\r\n", "400"),
    ROW("9112 5.2", G A "X: y\r\n\tz\r\n\r\n", "400"),
    ROW("9112 5.2", G A "X: y\r\n \r\n\r\n", "400"),
    ROW("9112 5.2", G A "X:\r\n y\r\n\r\n", "400"),
    ROW("9112 2.2", G " Host: a\r\n\r\n", "400"),
    ROW("9112 2.2", G "\t" END, "400"),
    ROW("9112 2.2", G A "X: y\n\r\n", "400"),
    ROW("9112 2.2", G A "X: y\r\r\n\r\n", "400"),
    ROW("9112 2.2", G A "X: y\rZ: z\r\n\r\n", "400"),
    ROW("9112 2.2", G A "X: y\n\n", "400"),
    ROW("9112 2.2", G A "\n", "400"),
    ROW("9112 2.2", G A "\r\r\n", "400"),
    ROW("9112 2.2", G A "X\n: y\r\n\r\n", "400"),
    ROW("9112 2.2", G A "X\r\n: y\r\n\r\n", "400"),
    ROW("9110 5.5", G A "X: a\0b\r\n\r\n", "400"),
    ROW("9110 5.5", G A "X: \x01\r\n\r\n", "400"),
    ROW("9110 5.5", G A "X: \x7f\r\n\r\n", "400"),
    ROW("9110 5.5", G A "X: \x1b[31m\r\n\r\n", "400"),
    ROW("9110 5.5", G A "X: 0123456789abcdef\x08\r\n\r\n", "400"),
    ROW("9110 5.5", G A "X: 0123456789\tabcdef\xff\xfe\r\n\r\n", OK),
    /* Upgrade is for the server to take or leave */
    ROW("9110 7.8", G A "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n\r\n", OK),
    ROW("9110 7.8", G A "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n\r\n",
        "GET / a 1.1 keep length 3"),
    ROW("9110 7.8", "GET / HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        "GET /  1.0 close none"),
    /* of no meaning to a server without ranges, forwarding and trailers of its own */
    ROW("9110 5.1", G A "No-Such-Field: y\r\nConnection: No-Such-Field\r\n\r\n", OK),
    ROW("9110 7.6.2", "OPTIONS / HTTP/1.1\r\nMax-Forwards: 0\r\n" END, "OPTIONS / a 1.1 keep none"),
    ROW("9110 10.1.4", G A "Connection: TE\r\nTE: trailers, deflate;q=0.5\r\n\r\n", OK),
    ROW("9110 13.1.5", G A "If-Range: \"a\"\r\n\r\n", OK),
    ROW("9110 14.2", G A "Range: lines=1-2\r\n\r\n", OK),
    ROW("9110 14.4", G A "Content-Range: bytes 0-0/1\r\n\r\n", OK),
    /* Host */
    ROW("9112 3.2", G "\r\n", "400"),
    ROW("9112 3.2", G "X: y\r\n\r\n", "400"),
    ROW("9112 3.2", G A A "\r\n", "400"),
    ROW("9112 3.2", G A "Host: b\r\n\r\n", "400"),
    ROW("9112 3.2", G A "Host:\r\n\r\n", "400"),
    ROW("9112 3.2", G "Host:\r\n\r\n", "GET /  1.1 keep none"),
    ROW("9112 3.2", G "Host: \r\n\r\n", "GET /  1.1 keep none"),
    ROW("9112 3.2", "GET / HTTP/1.0\r\n" END, "GET / a 1.0 close none"),
    ROW("9112 3.2", "GET / HTTP/1.0\r\n" A A "\r\n", "400"),
    ROW("9112 3.2", "GET / HTTP/1.0\r\nHost: a b\r\n\r\n", "400"),
    ROW("9112 3.2", "GET / HTTP/1.2\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: a:80\r\n\r\n", "GET / a:80 1.1 keep none"),
    ROW("9110 7.2", G "Host: a:\r\n\r\n", "GET / a: 1.1 keep none"),
    ROW("9110 7.2", G "Host: A.Example.\r\n\r\n", "GET / A.Example. 1.1 keep none"),
    ROW("9110 7.2", G "Host: 127.0.0.1\r\n\r\n", "GET / 127.0.0.1 1.1 keep none"),
    ROW("9110 7.2", G "Host: a_b-c~!$&'()*+,;=\r\n\r\n", "GET / a_b-c~!$&'()*+,;= 1.1 keep none"),
    ROW("9110 7.2", G "Host: a%20b\r\n\r\n", "GET / a%20b 1.1 keep none"),
    ROW("9110 7.2", G "Host: [::1]\r\n\r\n", "GET / [::1] 1.1 keep none"),
    ROW("9110 7.2", G "Host: [2001:db8::1.2.3.4]:8\r\n\r\n",
        "GET / [2001:db8::1.2.3.4]:8 1.1 keep none"),
    ROW("9110 7.2", G "Host: [vF.a]\r\n\r\n", "GET / [vF.a] 1.1 keep none"),
    ROW("9110 7.2", G "Host: [v.a]\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: [v1.]\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: [v1a]\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: [v1.a/b]\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: [v\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: [v]\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: [1:2:3:4:5:6:7:8:9]\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: [0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: [::1\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: ::1\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: :80\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: a:b\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: a:-1\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: a:80:80\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: a:99999\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: a:18446744073709551696\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: a b\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: a, b\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: a/b\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: a?b\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: u@a\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: http://a\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: a\\b\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: a%2\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: a%\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: \xc3\xa9\r\n\r\n", "400"),
    ROW("9110 7.2", G "Host: a\tb\r\n\r\n", "400"),
    /* Connection */
    ROW("9112 9.3", G A "Connection: close\r\n\r\n", "GET / a 1.1 close none"),
    ROW("9112 9.3", G A "Connection: CLOSE\r\n\r\n", "GET / a 1.1 close none"),
    ROW("9110 7.6.1", G A "Connection: x, close\r\n\r\n", "GET / a 1.1 close none"),
    ROW("9110 7.6.1", G A "Connection: x\t,\tclose\t,y\r\n\r\n", "GET / a 1.1 close none"),
    ROW("9110 7.6.1", G A "Connection: ,,close,\r\n\r\n", "GET / a 1.1 close none"),
    ROW("9110 7.6.1", G A "Connection: x\r\nConnection: close\r\n\r\n", "GET / a 1.1 close none"),
    ROW("9112 9.3", G A "Connection: keep-alive, close\r\n\r\n", "GET / a 1.1 close none"),
    ROW("9112 9.3", G A "Connection: close, keep-alive\r\n\r\n", "GET / a 1.1 close none"),
    ROW("9112 9.3", G A "Connection: keep-alive\r\n\r\n", OK),
    ROW("9110 7.6.1", G A "Connection: closed\r\n\r\n", OK),
    ROW("9110 7.6.1", G A "Connection: not-close\r\n\r\n", OK),
    ROW("9110 7.6.1", G A "Connection: clo se\r\n\r\n", OK),
    ROW("9110 7.6.1", G A "Connection: \"close\"\r\n\r\n", OK),
    ROW("9110 7.6.1", G A "Connection:\r\n\r\n", OK),
    ROW("9112 C.2.2", G A "Proxy-Connection: close\r\n\r\n", OK),
    ROW("9112 9.3", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET /  1.0 keep none"),
    ROW("9112 9.3", "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "GET /  1.0 keep none"),
    ROW("9112 9.3", "GET / HTTP/1.0\r\nConnection: a,\tkeep-alive\t\r\n\r\n",
        "GET /  1.0 keep none"),
    ROW("9112 9.3", "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n",
        "GET /  1.0 close none"),
    ROW("9112 9.3", "GET / HTTP/1.0\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n",
        "GET /  1.0 close none"),
    ROW("9112 C.2.2", "GET / HTTP/1.0\r\nProxy-Connection: keep-alive\r\n\r\n",
        "GET /  1.0 close none"),
};

#define P "POST / HTTP/1.1\r\n" A
#define BODY " a 1.1 keep "

static const struct row framing_rows[] = {
    ROW("9112 6.2", P "Content-Length: 5\r\n\r\n", "POST /" BODY "length 5"),
    ROW("9112 6.2", P "content-length:5\r\n\r\n", "POST /" BODY "length 5"),
    ROW("9110 5.5", P "Content-Length: \t5\t \r\n\r\n", "POST /" BODY "length 5"),
    ROW("9112 6.2", P "Content-Length: 0\r\n\r\n", "POST /" BODY "none"),
    ROW("9110 8.6", P "Content-Length: 00000000000000000000000005\r\n\r\n",
        "POST /" BODY "length 5"),
    ROW("9110 8.6", P "Content-Length: 9223372036854775799\r\n\r\n",
        "POST /" BODY "length 9223372036854775799"),
    ROW("9112 6.3", P "\r\n", "POST /" BODY "none"),
    ROW("9112 6", G A "Content-Length: 5\r\n\r\n", "GET / a 1.1 keep length 5"),
    ROW("9112 6.2", "POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\n", "POST /  1.0 close length 5"),
    ROW("9112 6.3", P "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: 0\r\nContent-Length: 0\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: 5, 5\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: 5,6\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: 5,\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: ,5\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: +5\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: -5\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: 5 5\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: 5\t5\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: 0x5\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: a\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: 5a\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: 5.0\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: 1e3\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: 1_0\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: \"5\"\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: 5;a=b\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length:\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: \xb2\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: 9223372036854775808\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: 18446744073709551615\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: 18446744073709551616\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: 18446744073709551621\r\n\r\n", "400"),
    ROW("9112 6.3", P "Content-Length: 99999999999999999999999999999999\r\n\r\n", "400"),
    ROW("9112 6.3", "POST / HTTP/1.0\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", "400"),
    ROW("9112 5", P "Content_Length: 5\r\n\r\n", "POST /" BODY "none"),
    /* Transfer-Encoding */
    ROW("9112 6.1", P "Transfer-Encoding: chunked\r\n\r\n", "POST /" BODY "chunked"),
    ROW("9112 6.1", P "transfer-encoding:cHuNkEd\r\n\r\n", "POST /" BODY "chunked"),
    ROW("9112 6.1", P "Transfer-Encoding: \tchunked\t \r\n\r\n", "POST /" BODY "chunked"),
    ROW("9112 6.1", G A "Transfer-Encoding: chunked\r\n\r\n", "GET / a 1.1 keep chunked"),
    ROW("9112 6.1", "POST / HTTP/1.5\r\n" A "Transfer-Encoding: chunked\r\n\r\n",
        "POST /" BODY "chunked"),
    ROW("9112 6.1", P "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", "400"),
    ROW("9112 6.1", P "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
    ROW("9112 6.1", P "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
    ROW("9112 6.1", P "Transfer-Encoding: gzip, chunked\r\nContent-Length: 5\r\n\r\n", "400"),
    ROW("9112 6.1", P "Content-Length: x\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
    ROW("9112 6.3", P "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
    ROW("9112 6.3", P "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
    ROW("9112 6.3", P "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n", "400"),
    ROW("9112 6.1", P "Transfer-Encoding: chunked, chunked\r\n\r\n", "400"),
    ROW("9112 6.3", P "Transfer-Encoding: gzip\r\n\r\n", "400"),
    ROW("9112 6.3", P "Transfer-Encoding: identity\r\n\r\n", "400"),
    ROW("9112 6.3", P "Transfer-Encoding: chunked, gzip\r\n\r\n", "400"),
    ROW("9112 6.3", P "Transfer-Encoding: chunked, identity\r\n\r\n", "400"),
    ROW("9112 6.1", P "Transfer-Encoding: gzip, chunked\r\n\r\n", "501"),
    ROW("9112 6.1", P "Transfer-Encoding: gzip,\tchunked\r\n\r\n", "501"),
    ROW("9112 6.1", P "Transfer-Encoding: identity, chunked\r\n\r\n", "501"),
    ROW("9112 6.1", P "Transfer-Encoding: chunked, gzip, chunked\r\n\r\n", "400"),
    ROW("9112 7", P "Transfer-Encoding: chunked;a=b\r\n\r\n", "400"),
    ROW("9112 6.3", P "Transfer-Encoding: \"chunked\"\r\n\r\n", "400"),
    ROW("9112 6.3", P "Transfer-Encoding: xchunked\r\n\r\n", "400"),
    ROW("9112 6.3", P "Transfer-Encoding: chunkedx\r\n\r\n", "400"),
    ROW("9112 6.3", P "Transfer-Encoding: x chunked\r\n\r\n", "400"),
    ROW("9112 6.3", P "Transfer-Encoding: chunked x\r\n\r\n", "400"),
    ROW("9112 6.3", P "Transfer-Encoding: chunk\r\n\r\n", "400"),
    ROW("9112 6.3", P "Transfer-Encoding: ,chunked\r\n\r\n", "400"),
    ROW("9112 6.3", P "Transfer-Encoding: chunked,\r\n\r\n", "400"),
    ROW("9112 6.3", P "Transfer-Encoding: ,\r\n\r\n", "400"),
    ROW("9112 6.3", P "Transfer-Encoding:\r\n\r\n", "400"),
    ROW("9112 6.3",
        P "Transfer-Encoding: \x0b"
          "chunked\r\n\r\n",
        "400"),
    ROW("9112 5.1", P "Transfer-Encoding : chunked\r\n\r\n", "400"),
    ROW("9112 5.2", P "Transfer-Encoding:\r\n chunked\r\n\r\n", "400"),
    ROW("9112 6.1", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
    ROW("9112 6.1", "POST / HTTP/1.0\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "400"),
    ROW("9112 6.1",
        "POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
    ROW("order", "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "400"),
    /* fields that only begin like these */
    ROW("9112 5", P "Transfer-EncodingX: y\r\n\r\n", "POST /" BODY "none"),
    ROW("9112 5", P "Transfer-Encodings: chunked\r\nContent-Length: 5\r\n\r\n",
        "POST /" BODY "length 5"),
    ROW("9112 5", P "Transfer-Encoding-X: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST /" BODY "chunked"),
    ROW("9112 5", P "Transfer-Encoding: chunked\r\nTransfer-EncodingX: y\r\n\r\n",
        "POST /" BODY "chunked"),
    ROW("9112 5", P "Transfer-Encodin: chunked\r\n\r\n", "POST /" BODY "none"),
    ROW("9112 5", P "Content-LengthX: 6\r\nContent-Length: 5\r\n\r\n", "POST /" BODY "length 5"),
    ROW("9112 5", P "Content-Lengt: 6\r\n\r\n", "POST /" BODY "none"),
    ROW("9112 5", P "Connections: close\r\nHosts: b\r\nExpects: x\r\n\r\n", "POST /" BODY "none"),
    /* HTAB, which http-parser takes for a part of these values */
    ROW("9110 5.6.3", P "X: a\tb\r\nTransfer-Encoding:\tchunked\t\r\n\r\n",
        "POST /" BODY "chunked"),
    ROW("9110 5.6.3", P "Content-Length: 5\t\t \r\nReferer:\tb\tc\t\r\n\r\n",
        "POST /" BODY "length 5"),
    ROW("9110 5.6.3", P "Content-Length: 5\t5\r\n\r\n", "400"),
    ROW("9110 5.6.3", P "Transfer-Encoding: chun\tked\r\n\r\n", "400"),
    /* Expect */
    ROW("9110 10.1.1", P "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
        "POST /" BODY "length 5 continue"),
    ROW("9110 10.1.1", P "Expect: 100-Continue\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST /" BODY "chunked continue"),
    ROW("9110 10.1.1", P "Expect: 100-continue\r\n\r\n", "POST /" BODY "none"),
    ROW("9110 10.1.1", P "Content-Length: 0\r\nExpect: 100-continue\r\n\r\n", "POST /" BODY "none"),
    ROW("9110 10.1.1", "POST / HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
        "POST /  1.0 close length 5"),
    ROW("9110 10.1.1", P "Content-Length: 5\r\nExpect: 100-continued\r\n\r\n",
        "POST /" BODY "length 5 other"),
    ROW("9110 10.1.1", P "Expect: x\r\n\r\n", "POST /" BODY "none other"),
    ROW("9110 10.1.1", P "Expect: 100-continue, x=y\r\nContent-Length: 5\r\n\r\n",
        "POST /" BODY "length 5 continue other"),
    ROW("9110 10.1.1", P "Expect: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
        "POST /" BODY "length 5 continue other"),
    ROW("9110 10.1.1", P "Expect:\r\n\r\n", "POST /" BODY "none"),
};

static const struct row *const tables[] = { line_rows, target_rows, field_rows, framing_rows };
static const int counts[] = { SUITE_ROWS(line_rows), SUITE_ROWS(target_rows),
                              SUITE_ROWS(field_rows), SUITE_ROWS(framing_rows) };

_Static_assert(sizeof(struct request_scan) <= 32, "every connection has one");

static const struct request_limits limits = { .header = 16384 };

#define PRINT(s) (int)(s).length, (s).data

static const char *outcome_text(enum request_result result, const struct request *request)
{
    if (result == REQUEST_MORE)
        return "more";
    if (result == REQUEST_REFUSED) {
        ck_assert_ptr_nonnull(request->reason);
        ck_assert_uint_gt(strlen(request->reason), 0);
        ck_assert(!request->is_persistent);
        return text_format("%u", request->status);
    }
    static const char *const framings[] = { "none", "length ", "chunked" };
    return text_format("%.*s %.*s%s%.*s %.*s %u.%u %s %s%s%s%s%s", PRINT(request->method_text),
                       PRINT(request->path), request->query.data ? "?" : "", PRINT(request->query),
                       PRINT(request->host), request->version / 10, request->version % 10,
                       request->is_persistent ? "keep" : "close", framings[request->framing],
                       request->framing == REQUEST_LENGTH
                           ? text_format("%llu", (unsigned long long)request->content_length)
                           : "",
                       request->expects_continue ? " continue" : "",
                       request->expects_other ? " other" : "", request->is_https ? " https" : "");
}

/* Feeds a copy that is no longer than it says, so that a sanitizer sees a look beyond. */
static enum request_result feed(struct request *request, struct request_scan *scan,
                                struct slice bytes, char **copy)
{
    *copy = malloc(bytes.length);
    if (bytes.length > 0)
        memcpy(*copy, bytes.data, bytes.length);
    return request_feed(request, scan, (struct slice){ *copy, bytes.length }, &limits);
}

/* The outcome of the bytes when they come in two pieces, or for step = 1 byte by byte. */
static const char *outcome_of(struct slice bytes, size_t first, size_t step)
{
    struct request request = { 0 };
    struct request_scan scan = { 0 };
    char *copy = NULL;
    enum request_result result = REQUEST_MORE;
    for (size_t length = first; result == REQUEST_MORE && length <= bytes.length; length += step) {
        free(copy);
        result = feed(&request, &scan, (struct slice){ bytes.data, length }, &copy);
        if (length < bytes.length && length + step > bytes.length)
            step = bytes.length - length;
    }
    const char *outcome = outcome_text(result, &request);
    if (result == REQUEST_DONE)
        ck_assert_uint_eq(request.head_length, bytes.length);
    free(copy);
    request_fini(&request);
    return outcome;
}

START_TEST(every_row_has_its_outcome)
{
    for (int i = 0; i < counts[_i]; i++) {
        const struct row *row = &tables[_i][i];
        struct slice bytes = { row->bytes, row->length };
        const char *whole = outcome_of(bytes, bytes.length, 1);
        ck_assert_msg(strcmp(whole, row->outcome) == 0, "%s: %s\ngives %s, not %s", row->section,
                      row->bytes, whole, row->outcome);
        for (size_t at = 0; at < bytes.length; at++) {
            const char *split = outcome_of(bytes, at, bytes.length - at);
            ck_assert_msg(strcmp(split, whole) == 0, "%s: %s\nsplit at %zu gives %s, not %s",
                          row->section, row->bytes, at, split, whole);
        }
        const char *dripped = outcome_of(bytes, 0, 1);
        ck_assert_msg(strcmp(dripped, whole) == 0, "%s: %s\nbyte by byte gives %s, not %s",
                      row->section, row->bytes, dripped, whole);
    }
}
END_TEST

/* The head ends where it ends, whatever comes behind it. */
START_TEST(rows_end_where_they_end)
{
    for (int i = 0; i < counts[_i]; i++) {
        const struct row *row = &tables[_i][i];
        struct request request = { 0 };
        struct request_scan scan = { 0 };
        struct buf all = { 0 };
        char *copy;
        if (row->outcome[0] < 'A' || row->outcome[0] > 'Z')
            continue;
        buf_add(&all, row->bytes, row->length);
        buf_add_string(&all, "GET /next HTTP/1.1\r\nHost: next\r\n\r\n");
        ck_assert_int_eq(feed(&request, &scan, buf_slice(&all), &copy), REQUEST_DONE);
        ck_assert_uint_eq(request.head_length, row->length);
        ck_assert_str_eq(outcome_text(REQUEST_DONE, &request), row->outcome);
        ck_assert_uint_eq(scan.position, 0);
        free(copy);
        buf_fini(&all);
        request_fini(&request);
    }
}
END_TEST

/* Where an error shows: the fewest bytes that are refused, and their status. */
static const struct {
    const char *bytes;
    size_t length;
    unsigned status;
} early_rows[] = {
#define EARLY(bytes, status)             \
    {                                    \
        bytes, sizeof(bytes) - 1, status \
    }
    EARLY("\x16", 400),
    EARLY("\x80", 400),
    EARLY("\0", 400),
    EARLY(" ", 400),
    EARLY("\n", 400),
    EARLY("\r\r", 400),
    EARLY("\r\n\r", 400),
    EARLY("PRI *", 400),
    EARLY("SSH-2.0-x\r", 400),
    EARLY("<", 400),
    EARLY("{", 400),
    EARLY("GET\r", 400),
    EARLY("GET\n", 400),
    EARLY("GET  ", 400),
    EARLY("GET a", 400),
    EARLY("GET htp", 400),
    EARLY("GET http:/x", 400),
    EARLY("GET http:///", 400),
    EARLY("GET http://a@", 400),
    EARLY("GET http://a:x/", 400),
    EARLY("GET http://a\\", 400),
    EARLY("CONNECT /", 400),
    EARLY("CONNECT a ", 400),
    EARLY("GET *", 400),
    EARLY("OPTIONS *a", 400),
    EARLY("GET /a\r", 400),
    EARLY("GET /#", 400),
    EARLY("GET /%g", 400),
    EARLY("GET /%1g", 400),
    EARLY("GET / h", 400),
    EARLY("GET / HTTP/x", 400),
    EARLY("GET / HTTP/0", 400),
    EARLY("GET / HTTP/1,", 400),
    EARLY("GET / HTTP/1.1\n", 400),
    EARLY("GET / HTTP/1.10", 400),
    EARLY("GET / HTTP/1.1\r\r", 400),
    EARLY("GET / HTTP/1.1\r\n ", 400),
    EARLY("GET / HTTP/1.1\r\n:", 400),
    EARLY("GET / HTTP/1.1\r\n\n", 400),
    EARLY("GET / HTTP/1.1\r\nA ", 400),
    EARLY("GET / HTTP/1.1\r\nA\r", 400),
    EARLY("GET / HTTP/1.1\r\nA: \0", 400),
    EARLY("GET / HTTP/1.1\r\nA: b\n", 400),
    EARLY("GET / HTTP/1.1\r\nA: b\rc", 400),
    EARLY("GET / HTTP/1.1\r\nA: b\r\n\t", 400),
    EARLY("GET / HTTP/2.0\r\n\r\n", 505),
    EARLY("FOO / HTTP/1.1\r\n\r\n", 501),
};

START_TEST(errors_show_at_once)
{
    struct slice bytes = { early_rows[_i].bytes, early_rows[_i].length };
    struct slice before = { bytes.data, bytes.length - 1 };
    ck_assert_str_eq(outcome_of(before, before.length, 1), "more");
    ck_assert_str_eq(outcome_of(bytes, bytes.length, 1), text_format("%u", early_rows[_i].status));
}
END_TEST

/* Every byte in every place, against the grammar written another way. */
static const struct {
    const char *before, *after;
    const char *others; /* allowed besides letters and digits */
    bool has_obs_text;
} place_rows[] = {
    { "G", "T / HTTP/1.1\r\n" END, "!#$%&'*+-.^_`|~ ", false },
    { "GET /", " HTTP/1.1\r\n" END, "-._~!$&'()*+,;=:@/?", false },
    { "GET /?", " HTTP/1.1\r\n" END, "-._~!$&'()*+,;=:@/?", false },
    { "GET http://b", "c/ HTTP/1.1\r\n" END, "-._~!$&'()*+,;=/?", false },
    { G A "X", "Y: z\r\n\r\n", "!#$%&'*+-.^_`|~:", false },
    { G A "X: y", "z\r\n\r\n", "\t !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", true },
    { G "Host: a", "b\r\n\r\n", "-._~!$&'()*+,;=", false },
};

static bool is_allowed(int place, int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != 0 && strchr(place_rows[place].others, c)) ||
           (c >= 0x80 && place_rows[place].has_obs_text);
}

START_TEST(every_byte_has_its_places)
{
    for (int c = 0; c < 256; c++) {
        struct buf all = { 0 };
        char byte = (char)c;
        buf_add_string(&all, place_rows[_i].before);
        buf_add(&all, &byte, 1);
        buf_add_string(&all, place_rows[_i].after);
        const char *outcome = outcome_of(buf_slice(&all), all.length, 1);
        /* A space ends the method, and "T" is no target; other methods are only unknown. */
        bool is_refused = strcmp(outcome, "400") == 0;
        bool is_right = is_refused != is_allowed(_i, c) || (_i == 0 && c == ' ');
        ck_assert_msg(is_right, "byte %02x in place %d gives %s", (unsigned)c, _i, outcome);
        buf_fini(&all);
    }
}
END_TEST

/* Heads of a given size against a limit: the request line is "GET /aaa HTTP/1.1" and CRLF. */
static const struct {
    size_t limit, path, field; /* bytes; of a field line X, if any */
    const char *outcome;
} limit_rows[] = {
    { 100, 10, 10, "DONE" },
    { 100, 74, 0, "DONE" }, /* 89 + 9 + 2 = 100 */
    { 100, 75, 0, "431" },  /* a head of 101 */
    { 100, 84, 0, "431" },  /* a line of 99 */
    { 100, 85, 0, "431" },  /* a line of 100 */
    { 100, 86, 0, "414" },  /* a line of 101 */
    { 100, 5000, 0, "414" },
    { 100, 10, 64, "DONE" }, /* 25 + 9 + 64 + 2 = 100 */
    { 100, 10, 65, "431" },
    { 100, 10, 5000, "431" },
    { 16384, 8000, 0, "DONE" }, /* what RFC 9110, 4.1, and RFC 9112, 3, recommend, and more */
    { 16384, 10, 16348, "DONE" },
    { 16384, 10, 16349, "431" },
    { 16384, 17000, 0, "414" },
    { 200000, 10, 190000, "DONE" }, /* beyond http-parser's own limit of 80 KiB */
    { 200000, 150000, 10, "DONE" },
};

START_TEST(limits_hold)
{
    struct buf all = { 0 };
    struct request_limits own = { .header = limit_rows[_i].limit };
    buf_printf(&all, "GET %s HTTP/1.1\r\n", text_repeat("/", limit_rows[_i].path));
    buf_printf(&all, "Host: a\r\n");
    if (limit_rows[_i].field > 0)
        buf_printf(&all, "X: %s\r\n", text_repeat("x", limit_rows[_i].field - 5));
    buf_printf(&all, "\r\n");

    /* Whole, without its end, and byte by byte: a limit does not wait for the end of the head. */
    for (int way = 0; way < 3; way++) {
        struct request request = { 0 };
        struct request_scan scan = { 0 };
        enum request_result result = REQUEST_MORE;
        size_t end = all.length, at = way == 2 ? 0 : end;
        if (way == 1 && strcmp(limit_rows[_i].outcome, "DONE") != 0)
            end = at = limit_rows[_i].limit;
        for (; result == REQUEST_MORE && at <= end; at++)
            result = request_feed(&request, &scan, (struct slice){ all.data, at }, &own);
        const char *outcome = result == REQUEST_DONE ? "DONE" : outcome_text(result, &request);
        ck_assert_msg(strcmp(outcome, limit_rows[_i].outcome) == 0, "way %d gives %s, not %s", way,
                      outcome, limit_rows[_i].outcome);
        request_fini(&request);
    }
    buf_fini(&all);
}
END_TEST

/* What fills the limit and is still a method is longer than any (RFC 9112, 3). */
START_TEST(methods_are_limited)
{
    static const char *const after[] = { "", "/ HTTP/1.1\r\n" END };
    const char *all = text_format("%s%s", text_repeat("A", limits.header), after[_i]);
    ck_assert_str_eq(outcome_of(slice_of(all), strlen(all), 1), "501");
    ck_assert_str_eq(outcome_of(slice_of(all), 0, 1), "501");
    ck_assert_str_eq(outcome_of(slice_of(all), limits.header - 1, limits.header), "501");
}
END_TEST

START_TEST(fields_are_counted)
{
    unsigned count = _i == 0 ? 100 : 101;
    struct buf all = { 0 };
    buf_printf(&all, "GET / HTTP/1.1\r\nHost: a\r\n");
    for (unsigned i = 1; i < count; i++)
        buf_printf(&all, "Name-%u: value %u\r\n", i, i);
    buf_printf(&all, "\r\n");
    ck_assert_str_eq(outcome_of(buf_slice(&all), all.length, 1), _i == 0 ? OK : "431");
    ck_assert_str_eq(outcome_of(buf_slice(&all), 0, 1), _i == 0 ? OK : "431");
    if (_i == 0) {
        struct request request = { 0 };
        struct request_scan scan = { 0 };
        request_feed(&request, &scan, buf_slice(&all), &limits);
        ck_assert_uint_eq(request.nfields, 100);
        ck_assert(slice_equal(request_field(&request, SLICE("nAmE-99")), SLICE("value 99")));
        ck_assert_ptr_null(request_field(&request, SLICE("Name-100")).data);
        request_fini(&request);
    }
    buf_fini(&all);
}
END_TEST

/* What http-parser knows; method_find must not know more. */
START_TEST(known_methods_are_parsed)
{
    static const char *const names[] = {
        "GET",      "HEAD",      "POST",        "PUT",      "DELETE", "OPTIONS",    "TRACE",
        "PATCH",    "ACL",       "BIND",        "CHECKOUT", "COPY",   "LINK",       "LOCK",
        "M-SEARCH", "MERGE",     "MKACTIVITY",  "MKCOL",    "MOVE",   "MKCALENDAR", "NOTIFY",
        "PROPFIND", "PROPPATCH", "PURGE",       "REBIND",   "REPORT", "SEARCH",     "SOURCE",
        "UNBIND",   "SUBSCRIBE", "UNSUBSCRIBE", "UNLOCK",   "UNLINK",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *head = text_format("%s / HTTP/1.1\r\n" END, names[i]);
        ck_assert_str_eq(outcome_of(slice_of(head), strlen(head), 1),
                         text_format("%s / a 1.1 keep none", names[i]));
    }
}
END_TEST

START_TEST(parser_has_a_version)
{
    char text[32];
    request_parser_version(text, sizeof text);
    ck_assert_msg(text_matches(text, "^[0-9]+\\.[0-9]+\\.[0-9]+$"), "%s", text);
}
END_TEST

/* An error's answer needs the method (no body for HEAD), a log the line, if they were there. */
START_TEST(refusals_keep_the_line)
{
    static const struct {
        const char *bytes, *method, *target;
    } rows[] = {
        { "HEAD /a HTTP/1.1\r\nX y", "HEAD", "/a" },
        { "\r\nHEAD /a HTTP/1.1\r\n\r\n", "HEAD", "/a" },
        { "HEAD /a HTTP/2.0\r\n\r\n", "HEAD", "/a" },
        { "HEAD /a http", "HEAD", "/a" },
        { "HEAD /a\x01", "HEAD", "" },
        { "HEAD\x01", "", "" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct request request = { .method = METHOD_GET, .nfields = 7 };
        struct request_scan scan = { 0 };
        for (int again = 0; again < 2; again++) { /* a refusal is for good */
            ck_assert_int_eq(request_feed(&request, &scan, slice_of(rows[i].bytes), &limits),
                             REQUEST_REFUSED);
            ck_assert(slice_equal(request.method_text, slice_of(rows[i].method)));
            ck_assert(slice_equal(request.target, slice_of(rows[i].target)));
            ck_assert_int_eq(request.method, rows[i].method[0] ? METHOD_HEAD : METHOD_UNKNOWN);
        }
        request_fini(&request);
    }
}
END_TEST

START_TEST(fields_are_cut_out)
{
    static const char head[] = "GET /a HTTP/1.1\r\nHost: a\r\nUser-Agent:  b c \r\nreferer:d\r\n"
                               "X:\t\r\nX: second\r\nUser-Agent: e\r\n\r\n";
    struct request request = { 0 };
    struct request_scan scan = { 0 };
    ck_assert_int_eq(request_feed(&request, &scan, SLICE(head), &limits), REQUEST_DONE);
    ck_assert_uint_eq(request.nfields, 6);
    ck_assert(slice_equal(request.fields[1].name, SLICE("User-Agent")));
    ck_assert(slice_equal(request.user_agent, SLICE("b c")));
    ck_assert(slice_equal(request.referer, SLICE("d")));
    ck_assert(slice_equal(request_field(&request, SLICE("x")), SLICE("")));
    ck_assert_ptr_nonnull(request_field(&request, SLICE("x")).data);
    ck_assert(!request.is_absolute);

    static const char tabbed[] = "GET /a HTTP/1.1\r\nHost:\ta\r\nReferer: b\tc\t\r\n\r\n";
    ck_assert_int_eq(request_feed(&request, &scan, SLICE(tabbed), &limits), REQUEST_DONE);
    ck_assert_ptr_eq(request.fields[0].name.data, strstr(tabbed, "Host"));
    ck_assert_ptr_eq(request.host.data, strstr(tabbed, "a\r\nReferer"));
    ck_assert(slice_equal(request.referer, SLICE("b\tc")));
    ck_assert_ptr_eq(request.referer.data, strstr(tabbed, "b\tc"));
    request_fini(&request);
}
END_TEST

/* One struct for all requests of a connection, as the worker has it. */
START_TEST(nothing_is_left_of_the_request_before)
{
    static const char all[] =
        "POST http://b/%41?q HTTP/1.1\r\nHost: a\r\nReferer: r\r\nUser-Agent: u\r\n"
        "Expect: 100-continue, x\r\nConnection: close\r\nContent-Length: 5\r\n\r\n"
        "GET /a HTTP/1.0\r\n\r\nHEAD /%2e HTTP/1.1\r\nHost: c\r\n\r\nFOO";
    struct request request = { 0 };
    struct request_scan scan = { 0 };
    struct slice rest = SLICE(all);
    static const char *const outcomes[] = {
        "POST /A?q b 1.1 close length 5 continue other",
        "GET /a  1.0 close none",
        "HEAD / c 1.1 keep none",
    };
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(request_feed(&request, &scan, rest, &limits), REQUEST_DONE);
        ck_assert_str_eq(outcome_text(REQUEST_DONE, &request), outcomes[i]);
        ck_assert_uint_eq(request.referer.length, i == 0);
        ck_assert_uint_eq(request.user_agent.length, i == 0);
        ck_assert_int_eq(request.is_absolute, i == 0);
        rest.data += request.head_length;
        rest.length -= request.head_length;
    }
    ck_assert_int_eq(request_feed(&request, &scan, rest, &limits), REQUEST_MORE);
    request_fini(&request);
}
END_TEST

/* An answer that outlives the buffer. */
START_TEST(request_moves)
{
    static const char *const heads[] = {
        "POST /a?q HTTP/1.1\r\nHost: a\r\nReferer: r\r\nUser-Agent:\r\nContent-Length: 5\r\n\r\n",
        "GET /a/%2e/%62 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://b HTTP/1.1\r\nHost: a\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n",
        "CONNECT b:1 HTTP/1.1\r\nHost: b\r\n\r\n",
    };
    struct request from = { 0 }, to = { 0 };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct request_scan scan = { 0 };
        size_t length = strlen(heads[i]);
        char *old = strdup(heads[i]), *new = strdup(heads[i]);
        ck_assert_int_eq(request_feed(&from, &scan, (struct slice){ old, length }, &limits),
                         REQUEST_DONE);
        const char *outcome = outcome_text(REQUEST_DONE, &from);
        ck_assert_int_eq(request_move(&to, &from, old, new), 0);
        memset(old, '#', length);
        free(old);
        if (from.normal.data)
            memset(from.normal.data, '#', from.normal.length);
        ck_assert_str_eq(outcome_text(REQUEST_DONE, &to), outcome);
        ck_assert_uint_eq(to.nfields, from.nfields);
        ck_assert(slice_equal(to.fields[0].name, SLICE("Host")));
        ck_assert_uint_eq(to.referer.length, i == 0);

        char *third = strdup(heads[i]); /* in place */
        ck_assert_int_eq(request_move(&to, &to, new, third), 0);
        memset(new, '#', length);
        free(new);
        ck_assert_str_eq(outcome_text(REQUEST_DONE, &to), outcome);
        free(third);
    }
    request_fini(&from);
    request_fini(&to);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("request");
    TCase *tests = suite_case(suite, "request");

    tcase_add_loop_test(tests, every_row_has_its_outcome, 0, SUITE_ROWS(tables));
    tcase_add_loop_test(tests, rows_end_where_they_end, 0, SUITE_ROWS(tables));
    tcase_add_loop_test(tests, errors_show_at_once, 0, SUITE_ROWS(early_rows));
    tcase_add_loop_test(tests, every_byte_has_its_places, 0, SUITE_ROWS(place_rows));
    tcase_add_loop_test(tests, limits_hold, 0, SUITE_ROWS(limit_rows));
    tcase_add_loop_test(tests, methods_are_limited, 0, 2);
    tcase_add_loop_test(tests, fields_are_counted, 0, 2);
    tcase_add_test(tests, known_methods_are_parsed);
    tcase_add_test(tests, parser_has_a_version);
    tcase_add_test(tests, refusals_keep_the_line);
    tcase_add_test(tests, fields_are_cut_out);
    tcase_add_test(tests, nothing_is_left_of_the_request_before);
    tcase_add_test(tests, request_moves);
    return suite_run(suite);
}
