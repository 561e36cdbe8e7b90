#include <iostream>

#include "membill/version.h"

int main() { std::cout << "membill " << membill::kVersion << '\n'; }
