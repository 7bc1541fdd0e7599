// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.convert;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.images.ImageDecoding;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/// Reads `HEIGHT` or `HEIGHTxWIDTH`, the size of decoded pictures.
public final class ImageSize implements ITypeConverter<ImageDecoding> {
  private static final Pattern SPELLING = Pattern.compile("([0-9]{1,9})(?:x([0-9]{1,9}))?");

  @Override
  public ImageDecoding convert(String text) {
    Matcher spelled = SPELLING.matcher(text);
    if (!spelled.matches()) {
      throw new TypeConversionException(
          "must be HEIGHT or HEIGHTxWIDTH, such as 224 or 224x320 (was '" + text + "')");
    }
    String height = spelled.group(1);
    String width = spelled.group(2) == null ? height : spelled.group(2);
    try {
      return ImageDecoding.of(Integer.parseInt(height), Integer.parseInt(width));
    } catch (MisuseException e) {
      throw new TypeConversionException(e.getMessage());
    }
  }
}
