// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;

class JpegSegmentsTest {
  /// Returns a picture of one pixel with three components.
  ///
  /// @param length the length of its frame
  /// @param components what the frame says of them
  private static MemorySegment picture(String length, String components) {
    String frame = "ffc0 %s 08 0001 0001 03 %s".formatted(length, components);
    String all = "ffd8" + frame + "ffda 0002 00 ffd9";
    return MemorySegment.ofArray(HexFormat.of().parseHex(all.replace(" ", "")));
  }

  @Test
  void aFrameThatIsTooShortForItsComponentsIsRefused() throws IOException {
    String components = "011100 021100 031100";
    assertThat(new JpegSegments(picture("0011", components)).header().components()).isEqualTo(3);
    assertThatThrownBy(() -> new JpegSegments(picture("0008", "")).header())
        .hasMessageContaining("or has 3 components, not 1, 3 or 4");
  }
}
