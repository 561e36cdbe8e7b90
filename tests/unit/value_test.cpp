#include "membill/value.h"

#include "membill/hardware.h"
#include "support/catch.h"

using namespace membill;

TEST_CASE("a value knows its kind", "[value]") {
  CHECK(Value().is_null());
  CHECK(Value::of(true).is_bool());
  CHECK(Value::of(true).as_bool());
  CHECK(Value::of(8).is_int());
  CHECK(Value::of(8).as_int() == 8);
  CHECK(Value::of(8).as_real() == 8.0);
  CHECK(Value::of("text").is_string());
  CHECK(Value::of("text").as_string() == "text");
  const Value real = Value::of(2e8, "2e8");
  CHECK(real.is_number());
  CHECK_FALSE(real.is_int());
  CHECK(real.as_real() == 2e8);
  CHECK(real.written() == "2e8");
  CHECK(Value::make_list({Value::of(1)}).items().size() == 1);
}

TEST_CASE("a map keeps its order and holds a key once", "[value]") {
  Value map = Value::make_map({{"b", Value::of(1)}, {"a", Value::of(2)}});
  map.set("b", Value::of(3));
  map.set("c", Value());
  REQUIRE(map.entries().size() == 3);
  CHECK(map.entries()[0].first == "b");
  CHECK(map.entries()[2].first == "c");
  CHECK(map.find("b")->as_int() == 3);
  CHECK(map.find("z") == nullptr);
  CHECK(Value::of(1).find("b") == nullptr);
}

TEST_CASE("kinds have names for messages", "[value]") {
  CHECK(Value::kind_name(Value::Kind::null) == "null");
  CHECK(Value::kind_name(Value::Kind::boolean) == "true or false");
  CHECK(Value::kind_name(Value::Kind::integer) == "whole number");
  CHECK(Value::kind_name(Value::Kind::real) == "number");
  CHECK(Value::kind_name(Value::Kind::string) == "text");
  CHECK(Value::kind_name(Value::Kind::list) == "list");
  CHECK(Value::kind_name(Value::Kind::map) == "map");
}

TEST_CASE("a card's usable bytes are what others leave", "[hardware]") {
  Hardware hardware;
  CHECK_FALSE(hardware.usable());
  hardware.gpu.emplace();
  CHECK_FALSE(hardware.usable());
  hardware.gpu->usable = 24_GiB;
  CHECK(hardware.usable() == 24_GiB);
  hardware.others_use = 1_GiB;
  CHECK(hardware.usable() == 23_GiB);
  hardware.others_use = 30_GiB;
  CHECK(hardware.usable() == 0_B);
}
