#include <iostream>
#include <string>

#include "membill/units.h"
#include "membill/version.h"

int main() {
  membill::Bytes size;
  std::string why;
  if (!membill::parse_bytes("80 GiB", size, why) || size.count() != 85899345920) return 1;
  std::cout << "membill " << membill::kVersion << '\n';
}
