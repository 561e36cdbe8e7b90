// Makes rows of plan_fields() from the path of a field: count_row<{1}, &TrainingPlan::batch>("batch", ...).
#pragma once

#include <string>
#include <vector>

#include "catalog/plan_fields/readers.h"
#include "catalog/plan_fields/words.h"
#include "membill/catalog.h"

namespace membill {

struct RowText {
  std::string key;
  std::string flag;
  std::string help;
};

// The field that `Path`, pointers to members from the outermost to the innermost, leads to.
template <auto... Path>
[[nodiscard]] auto& field_at(TrainingPlan& plan) {
  return (plan.*....*Path);
}
template <auto... Path>
[[nodiscard]] const auto& field_at(const TrainingPlan& plan) {
  return (plan.*....*Path);
}

[[nodiscard]] inline PlanFieldRow make_row(RowText text, std::string values,
                                           std::string (*read)(const Value&, TrainingPlan&, std::string&),
                                           std::string (*write)(const TrainingPlan&)) {
  PlanFieldRow row;
  row.key = std::move(text.key);
  row.flag = std::move(text.flag);
  row.help = std::move(text.help);
  row.values = std::move(values);
  row.read = read;
  row.write = write;
  return row;
}

template <auto... Path>
[[nodiscard]] std::string write_field(const TrainingPlan& plan) {
  return to_json(field_at<Path...>(plan));
}

// Counts, also optional ones (null). `Least`, `Most`: both allowed.
template <std::int64_t Least, std::int64_t Most, auto... Path>
[[nodiscard]] PlanFieldRow count_row(RowText text) {
  constexpr CountRange kRange{Least, Most};
  return make_row(
      std::move(text), range_text(kRange),
      [](const Value& value, TrainingPlan& plan, std::string&) {
        return read_count(value, CountRange{Least, Most}, field_at<Path...>(plan));
      },
      write_field<Path...>);
}

template <auto... Path>
[[nodiscard]] PlanFieldRow bool_row(RowText text) {
  return make_row(
      std::move(text), "true false",
      [](const Value& value, TrainingPlan& plan, std::string&) { return read_bool(value, field_at<Path...>(plan)); },
      write_field<Path...>);
}

template <const RealRange& Range, auto... Path>
[[nodiscard]] PlanFieldRow real_row(RowText text) {
  return make_row(
      std::move(text), range_text(Range),
      [](const Value& value, TrainingPlan& plan, std::string&) {
        return read_real(value, Range, field_at<Path...>(plan));
      },
      write_field<Path...>);
}

template <auto... Path>
[[nodiscard]] PlanFieldRow texts_row(RowText text) {
  return make_row(
      std::move(text), "names",
      [](const Value& value, TrainingPlan& plan, std::string&) { return read_texts(value, field_at<Path...>(plan)); },
      write_field<Path...>);
}

template <typename E>
struct IsOptional {
  static constexpr bool kValue = false;
};
template <typename E>
struct IsOptional<std::optional<E>> {
  static constexpr bool kValue = true;
};

template <const auto& Words, auto... Path>
[[nodiscard]] std::string read_word_field(const Value& value, TrainingPlan& plan, std::string& hint) {
  auto& field = field_at<Path...>(plan);
  if constexpr (IsOptional<std::remove_cvref_t<decltype(field)>>::kValue) {
    if (value.is_null()) return field.reset(), std::string();
  }
  std::size_t index = 0;
  std::string wrong = read_word(value, names_of(Words), index, hint);
  if (wrong.empty()) field = Words[index].value;
  return wrong;
}

template <const auto& Words, auto... Path>
[[nodiscard]] std::string write_word_field(const TrainingPlan& plan) {
  const auto& field = field_at<Path...>(plan);
  if constexpr (IsOptional<std::remove_cvref_t<decltype(field)>>::kValue) {
    return field ? to_json(word_of(Words, *field)) : "null";
  } else {
    return to_json(word_of(Words, field));
  }
}

template <const auto& Words, auto... Path>
[[nodiscard]] PlanFieldRow word_row(RowText text) {
  return make_row(std::move(text), help_of(Words), read_word_field<Words, Path...>, write_word_field<Words, Path...>);
}

// Words that the plan keeps as text. `Words` is a constexpr array of string views.
template <const auto& Words, auto... Path>
[[nodiscard]] PlanFieldRow text_word_row(RowText text) {
  std::string values;
  for (const std::string_view word : Words) values += (values.empty() ? "" : " ") + std::string(word);
  return make_row(
      std::move(text), values,
      [](const Value& value, TrainingPlan& plan, std::string& hint) {
        auto& field = field_at<Path...>(plan);
        if constexpr (IsOptional<std::remove_cvref_t<decltype(field)>>::kValue) {
          if (value.is_null()) return field.reset(), std::string();
        }
        std::size_t index = 0;
        std::string wrong = read_word(value, {Words.begin(), Words.end()}, index, hint);
        if (wrong.empty()) field = std::string(Words[index]);
        return wrong;
      },
      write_field<Path...>);
}

// The rows by subject. plan_fields() joins them in this order.
[[nodiscard]] std::vector<PlanFieldRow> method_fields();  // stage, method, weights, precision, adapter, freeze
[[nodiscard]] std::vector<PlanFieldRow> optimizer_fields();
[[nodiscard]] std::vector<PlanFieldRow> step_fields();    // batch, checkpointing, attention, loss, loop, implementation
[[nodiscard]] std::vector<PlanFieldRow> vision_fields();  // images
[[nodiscard]] std::vector<PlanFieldRow> sharding_fields();  // engine, sharding, parallel
[[nodiscard]] std::vector<PlanFieldRow> runtime_fields();   // allocator, evaluation, software, preference stages

}  // namespace membill
