// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

/// Says which part of a picture is resized to what, and which window of the result is wanted.
///
/// @param region the part, in pixels
/// @param width the width that the whole region would have after resizing
/// @param height the height that it would have
/// @param left the window's first column in it
/// @param top the window's first row in it
/// @param mirrored whether the window is mirrored from left to right
record Sampling(Region region, int width, int height, int left, int top, boolean mirrored) {

  /// A rectangle, in pixels.
  record Region(int x, int y, int width, int height) {}

  /// The region along one axis of a picture that is decoded at a part of its size.
  ///
  /// @param first the first pixel that it touches
  /// @param count how many pixels it touches
  /// @param from where it begins, in pixels after the first
  /// @param to where it ends
  /// @param whole the pixels that the whole region would have after resizing
  /// @param start the first of these that is wanted
  record Span(int first, int count, double from, double to, int whole, int start) {
    /// @param begin where the region begins in the picture's own pixels
    /// @param reduction how many times smaller the decoded picture is
    /// @param pixels how many pixels that one has
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
