// JSON with comments and commas that nothing follows.
#include "io/json_comments.h"

#include "support/catch.h"

namespace membill::io_test {

TEST_CASE("comments and last commas become blanks") {
  CHECK(io::without_json_comments("{\"a\": 1, // one\n \"b\": [1, 2, ],}") == "{\"a\": 1,       \n \"b\": [1, 2  ] }");
  CHECK(io::without_json_comments("/* a\nb */{}") == "    \n    {}");
  CHECK(io::without_json_comments("{\"url\": \"http://x/*y*/#z\", \"q\": \"\\\"//\"}") ==
        "{\"url\": \"http://x/*y*/#z\", \"q\": \"\\\"//\"}");
  CHECK(io::without_json_comments("[1, # last\n]") == "[1        \n]");
  CHECK(io::without_json_comments("") == "");
}

TEST_CASE("unfinished comments and quotes end quietly") {
  for (const char* text : {"//", "/*", "/", "\"", "\"\\", "[,", "#", "{\"a\n"})
    CHECK_NOTHROW(io::without_json_comments(text));
}

}  // namespace membill::io_test
