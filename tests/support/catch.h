// Catch2 under one name: version 3 has headers per topic, version 2 (Debian 12) has one.
//
// Works in both: TEST_CASE, SECTION, DYNAMIC_SECTION, GENERATE, table, TEMPLATE_TEST_CASE,
// STATIC_REQUIRE, REQUIRE_THROWS_WITH, REQUIRE_THROWS_MATCHES with Message, and CHECK_THAT with
// WithinRel, WithinAbs, StartsWith, EndsWith, Matches, Equals. Not in both: Contains, Approx, SKIP.
// Test names keep to letters, digits, spaces and hyphens.
#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
