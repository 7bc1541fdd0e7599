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
}
