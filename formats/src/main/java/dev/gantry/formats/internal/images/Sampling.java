// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

/// Says which part of a picture is resized to which size, and which window of the result is
/// wanted.
///
/// @param region the part that is resized, in pixels
/// @param width the width that the whole region would have after resizing
/// @param height the height that the whole region would have after resizing
/// @param left the window's first column in the resized region
/// @param top the window's first row in the resized region
/// @param mirrored whether the window is mirrored from left to right
record Sampling(Region region, int width, int height, int left, int top, boolean mirrored) {

  /// A rectangle, in pixels.
  record Region(int x, int y, int width, int height) {}

  /// The region along one axis of a picture that is decoded at a part of its size.
  ///
  /// @param first the first pixel that the region touches
  /// @param count how many pixels the region touches
  /// @param from the start of the region, in pixels from `first`
  /// @param to the end of the region, in pixels from `first`
  /// @param whole the pixels that the whole region would have after resizing
  /// @param start the first wanted pixel after resizing
  record Span(int first, int count, double from, double to, int whole, int start) {
    /// @param begin the start of the region in the full-size picture's pixels
    /// @param reduction how many times smaller the decoded picture is
    /// @param pixels how many pixels the decoded picture has
    private static Span of(int begin, int length, int reduction, int pixels, int whole, int start) {
      int first = begin / reduction;
      int end = Math.min(pixels, Math.ceilDiv(begin + length, reduction));
      return new Span(
          first,
          end - first,
          (double) begin / reduction - first,
          (double) (begin + length) / reduction - first,
          whole,
          start);
    }
  }

  Span across(int reduction, int pixels) {
    return Span.of(region.x(), region.width(), reduction, pixels, width, left);
  }

  Span down(int reduction, int pixels) {
    return Span.of(region.y(), region.height(), reduction, pixels, height, top);
  }
}
