// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

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
  void whatOnlyLooksLikeAJfifSegmentDecidesNothing() throws IOException {
    String unnamed = "ffc0 0011 08 0001 0001 03 011100 021100 031100";
    byte[] rgb = header(adobe(0), unnamed).essenceBytes();
    String otherName = "ffe0 0010 4a46494658 0101 00 0001 0001 00 00";
    String tooShort = "ffe0 000f 4a46494600 0101 00 0001 0001 00";
    assertThat(header(otherName + adobe(0), unnamed).essenceBytes()).isEqualTo(rgb);
    assertThat(header(tooShort + adobe(0), unnamed).essenceBytes()).isEqualTo(rgb);
  }

  /// Without the segment, a decoder would take the colours for YCbCr.
  @Test
  void anAdobeSegmentThatDecidesStaysInWhatIsDecoded() throws IOException {
    String unnamed = "ffc0 0011 08 0001 0001 03 011100 021100 031100";
    String rgb = HexFormat.of().formatHex(header(adobe(0), unnamed).essenceBytes());
    assertThat(rgb).startsWith("ffd8" + adobe(0).replace(" ", ""));
  }

  @Test
  void onlyHuffmanCodedPicturesOfThreeComponentsAreCommon() throws IOException {
    String three = " 0011 08 0001 0001 03 011100 021100 031100";
    assertThat(header("", "ffc0" + three).common()).isTrue();
    assertThat(header("", "ffc2" + three).common()).isTrue();
    assertThat(header("", "ffc9" + three).common()).isFalse();
    assertThat(header("", "ffc0 000b 08 0001 0001 01 011100").common()).isFalse();
    assertThat(header("", "ffc0 0014 08 0001 0001 04 011100 021100 031100 041100").common())
        .isFalse();
  }

  @ParameterizedTest
  @ValueSource(strings = {"ffc2", "ffca"})
  void aProgressivePictureOfTooManyScansIsRefused(String frame) throws IOException {
    String start = "ffd8" + frame + " 0011 08 0001 0001 03 011100 021100 031100";
    String scan = "ffda 0002 00";
    var most = new JpegSegments(bytes(start + scan.repeat(100) + "ffd9"));
    assertThat(most.header().components()).isEqualTo(3);
    var more = new JpegSegments(bytes(start + scan.repeat(101) + "ffd9"));
    assertThatThrownBy(more::header).hasMessageContaining("101 scans, more than 100");
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
