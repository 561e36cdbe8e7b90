#include "support/small_llama.h"

#include "membill/catalog.h"

namespace membill::test {

ModelSpec small_llama() {
  Problems problems;
  GenericModel given;
  given.hidden = 256;
  given.layers = 7;
  given.heads = 4;
  given.kv_heads = 2;
  given.intermediate = 688;
  given.vocab = 3000;
  return generic_model(given, problems);
}

}  // namespace membill::test
