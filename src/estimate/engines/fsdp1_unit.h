// One flat parameter of FullyShardedDataParallel (torch 2.15 torch/distributed/fsdp/_flat_param.py).
#pragma once

#include <memory>
#include <vector>

#include "estimate/engines/engine.h"
#include "estimate/engines/placement.h"
#include "estimate/parameters.h"

namespace membill {

struct FlatMember {
  Parameter* whole = nullptr;
  std::unique_ptr<Parameter> codes;  // `whole` of a quantised weight: its packed bytes as a floating type
  std::int64_t begin = 0, elements = 0;
};

struct Fsdp1Unit {
  std::vector<FlatMember> members;
  const Fsdp1Unit* around = nullptr;  // the unit whose module holds this one's
  std::int64_t elements = 0;          // of the flat parameter, with padding between and behind its tensors
  std::int64_t shard = 0;             // elements of one rank's part
  DType stored = DType::bf16, gathered = DType::bf16;
  ItemId item = 0;
  Parameter own;             // what the optimizer steps: this rank's trained elements
  Tensor kept;               // the shard
  Tensor whole;              // the unsharded flat parameter
  Tensor here;               // the shard from the host, where it is gathered as it is
  Tensor gradient;           // not reduced yet, between micro-batches
  Tensor reduced;            // this rank's part; use_orig_params keeps it beyond zero_grad
  std::size_t position = 0;  // in the order of the forward, from 0
  [[nodiscard]] bool is_empty() const { return members.empty(); }
  [[nodiscard]] bool trains() const;
};

struct FlatPlan {
  std::int64_t ranks = 1, rank = 0;
  bool aligned = true;  // use_orig_params: tensors begin at multiples of 16 bytes of the compute type
  bool on_host = false;
};

class Fsdp1Builder {
 public:
  Fsdp1Builder(Recorder& recorder, const TrainingPlan& plan, const FlatPlan& flat)
      : r_(recorder), plan_(plan), flat_(flat) {}

  // Puts a parameter, or a quantised module's codes, into `unit`.
  void add(Fsdp1Unit& unit, Parameter& parameter, DType stored);
  void add_codes(Fsdp1Unit& unit, Module& module);
  // Cuts the flat parameter; allocates the shard.
  void close(Fsdp1Unit& unit);

 private:
  void place(Fsdp1Unit& unit, FlatMember member, DType stored);
  [[nodiscard]] std::int64_t own_trained_elements(const Fsdp1Unit& unit) const;

  Recorder& r_;
  const TrainingPlan& plan_;
  FlatPlan flat_;
};

}  // namespace membill
