// The timeline drawn as SVG: for --format svg, and inside the page of --format html.
#ifndef MEMBILL_REPORT_PICTURE_H_
#define MEMBILL_REPORT_PICTURE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "report/timeline_view.h"

namespace membill::report {

// Items with a band, and a colour, of their own.
inline constexpr std::size_t kBands = 8;

// CSS variables and classes of the picture, light and dark: colours that people with colour-blindness tell apart.
[[nodiscard]] std::string_view picture_style();
// The class of a band's colour, "mb-0" to "mb-8": the last is for all others together.
[[nodiscard]] std::string band_class(const TimelineView& view, std::size_t band);

// The <svg> element. `titled`: with the lines on the model and the plan above, for a picture that stands alone.
[[nodiscard]] std::string timeline_svg(const Report& report, const TimelineView& view, bool titled);

}  // namespace membill::report

#endif  // MEMBILL_REPORT_PICTURE_H_
