// Text for SVG and HTML.
#ifndef MEMBILL_REPORT_XML_H_
#define MEMBILL_REPORT_XML_H_

#include <string>
#include <string_view>

namespace membill::report {

// `text` cleaned, with what could start or end markup or an attribute written as entities.
[[nodiscard]] std::string escaped_xml(std::string_view text);

}  // namespace membill::report

#endif  // MEMBILL_REPORT_XML_H_
