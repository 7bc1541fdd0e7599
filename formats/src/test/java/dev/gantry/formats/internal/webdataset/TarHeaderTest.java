// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.webdataset;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Some faults would make a reader go round for ever.
@Timeout(value = 20, threadMode = ThreadMode.SEPARATE_THREAD)
class TarHeaderTest {
  private static final int CHECKSUM = 148;

  /// The checksum counts its own eight bytes as blanks, and the byte of the name as 233 or -23.
  @ParameterizedTest
  @CsvSource({"489, true", "233, true", "234, false"})
  void aChecksumIsOfSignedOrUnsignedBytes(int checksum, boolean right) {
    byte[] block = new byte[512];
    block[0] = (byte) 0xE9;
    byte[] digits =
        String.format(Locale.ROOT, "%06o", checksum).getBytes(StandardCharsets.US_ASCII);
    System.arraycopy(digits, 0, block, CHECKSUM, digits.length);
    assertThat(new TarHeader(block).hasItsChecksum()).isEqualTo(right);
  }

  @Test
  void onlyAHeaderOfPosixHasAPrefix() {
    byte[] block = new byte[512];
    block[0] = 'a';
    block[345] = 'b';
    byte[] gnu = "ustar  ".getBytes(StandardCharsets.US_ASCII);
    System.arraycopy(gnu, 0, block, 257, gnu.length);
    assertThat(new TarHeader(block).name()).isEqualTo("a");
    block[257 + 5] = 0;
    assertThat(new TarHeader(block).name()).isEqualTo("b/a");
  }

  @ParameterizedTest
  @ValueSource(strings = {"0 a=b\n", "2 a=b\n", "1000 a=b\n", "6 a=b\t", "7 path\n"})
  void aRecordWithoutItsLengthOrItsFormIsRefused(String record) {
    byte[] bytes = ("9 path=a\n" + record).getBytes(StandardCharsets.UTF_8);
    assertThatThrownBy(() -> PaxRecords.parse(bytes)).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void zerosMayFollowTheLastRecord() {
    byte[] bytes = Arrays.copyOf("9 path=a\n".getBytes(StandardCharsets.UTF_8), 512);
    assertThat(PaxRecords.parse(bytes).path()).contains("a");
  }
}
