// The file that a sweep writes its rows to, and how an interrupted one goes on.
#ifndef MEMBILL_CLI_SWEEP_FILE_H_
#define MEMBILL_CLI_SWEEP_FILE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace membill::cli {

class SweepFile {
 public:
  // Opens `path` for the rows behind `header` ("" for none). A file that is there is refused, unless `resume`: then its last line that
  // is not whole is cut off and what follows is appended. Throws InputError.
  SweepFile(const std::string& path, const std::string& header, bool resume);
  SweepFile(const SweepFile&) = delete;
  SweepFile& operator=(const SweepFile&) = delete;
  ~SweepFile();

  // The last whole row that was there, with its newline; none when there was none.
  [[nodiscard]] const std::optional<std::string>& last_row() const { return last_row_; }
  // Appends whole rows. Throws InputError when the file cannot be written.
  void write(std::string_view rows);

 private:
  void keep_whole_lines(const std::string& header);
  void refuse(const std::string& why, const std::string& hint = {}) const;

  std::string path_;
  int descriptor_ = -1;
  std::optional<std::string> last_row_;
};

// The number of the case with which a row begins; none when it begins with something else.
[[nodiscard]] std::optional<std::size_t> case_of_row(std::string_view row);

}  // namespace membill::cli

#endif  // MEMBILL_CLI_SWEEP_FILE_H_
