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
    return bytes("ffd8 ffc0 %s 08 0001 0001 03 %s ffda 0002 00 ffd9".formatted(length, components));
  }

  private static MemorySegment bytes(String hex) {
    return MemorySegment.ofArray(HexFormat.of().parseHex(hex.replace(" ", "")));
  }

  /// Returns the header of a picture whose application segments precede its frame.
  private static ImageHeader header(String applications, String frame) throws IOException {
    return new JpegSegments(bytes("ffd8" + applications + frame + "ffda 0002 00 ffd9")).header();
  }

  private static String adobe(int transform) {
    return "ffee 000e 41646f6265 0064 0000 0000 %02x".formatted(transform);
  }

  @Test
  void aJfifSegmentDecidesBeforeAnAdobeSegmentAndTheComponentsNames() throws IOException {
    String jfif = "ffe0 0010 4a46494600 0101 00 0001 0001 00 00";
    String named = "ffc0 0011 08 0001 0001 03 521100 471100 421100";
    byte[] ycbcr = header(jfif, named).essenceBytes();
    assertThat(header(jfif + adobe(0), named).essenceBytes()).isEqualTo(ycbcr);
    assertThat(header(adobe(0) + jfif, named).essenceBytes()).isEqualTo(ycbcr);
    assertThat(header(adobe(2), named).essenceBytes()).isEqualTo(ycbcr);
    assertThat(header(adobe(0), named).essenceBytes()).isNotEqualTo(ycbcr);
    assertThat(header("", named).essenceBytes()).isNotEqualTo(ycbcr);
  }

  @Test
  void fourComponentsAreTransformedUnlessTheAdobeSegmentDeniesIt() throws IOException {
    String frame = "ffc0 0014 08 0001 0001 04 011100 021100 031100 041100";
    assertThat(header("", frame).ycck()).isFalse();
    assertThat(header(adobe(0), frame).ycck()).isFalse();
    assertThat(header(adobe(1), frame).ycck()).isTrue();
    assertThat(header(adobe(2), frame).ycck()).isTrue();
  }

  @Test
  void aFrameThatIsTooShortForItsComponentsIsRefused() throws IOException {
    String components = "011100 021100 031100";
    assertThat(new JpegSegments(picture("0011", components)).header().components()).isEqualTo(3);
    assertThatThrownBy(() -> new JpegSegments(picture("0008", "")).header())
        .hasMessageContaining("or has 3 components, not 1, 3 or 4");
  }
}
