// What one fully_shard call holds: shards between uses, whole tensors while they are gathered.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "estimate/engines/placement.h"
#include "estimate/parameters.h"

namespace membill {

// One tensor of a unit: how the module sees it, and the shard that this rank keeps.
struct ShardedTensor {
  Parameter* whole = nullptr;
  std::unique_ptr<Parameter>
      codes;  // `whole` of a part of a quantised weight: its packed bytes as the type that is cut
  std::unique_ptr<Parameter> shard;  // what the optimizer steps; this rank's rows, without padding
  Size rows, row;                    // rows of the padded shard, elements of a row
  [[nodiscard]] Size elements() const { return rows * row; }
};

struct Fsdp2Unit {
  std::vector<ShardedTensor> tensors;
  Tensor flat;                   // all-gather output
  std::vector<Tensor> gathered;  // unsharded parameters
  bool reshards = true;          // after forward
  std::size_t position = 0;      // in the order of the forward, from 0
};

// How shards are made.
struct ShardPlan {
  std::int64_t ranks = 1;  // that share a tensor
  std::int64_t rank = 0;   // of them
  bool on_host = false;    // shards live in host memory
};

class Fsdp2Builder {
 public:
  Fsdp2Builder(Recorder& recorder, const TrainingPlan& plan, const ShardPlan& shards)
      : r_(recorder), plan_(plan), shards_(shards) {}

  // Shards every parameter of `module` into `unit`. Quantised storage stays whole where its type is no floating one.
  void add(Fsdp2Unit& unit, Module& module);

 private:
  void add(Fsdp2Unit& unit, Parameter& whole, DType stored, std::unique_ptr<Parameter> codes = nullptr);
  void add_codes(Fsdp2Unit& unit, Module& module);
  void add_part(Fsdp2Unit& unit, const Module& module, Tensor& packed, DType type, const char* item,
                std::int64_t width = 1);

  Recorder& r_;
  const TrainingPlan& plan_;
  ShardPlan shards_;
};

}  // namespace membill
