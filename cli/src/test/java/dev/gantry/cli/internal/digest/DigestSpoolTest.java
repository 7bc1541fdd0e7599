// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.digest;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@ExtendWith(NoLeaks.class)
class DigestSpoolTest {
  private static byte[] digest(int number) {
    return ByteBuffer.allocate(DigestSpool.DIGEST_BYTES).putInt(number).array();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 4096, 4097, 2 * 4096, 2 * 4096 + 7})
  void allComeBackInOrderAsOftenAsAsked(int count) throws IOException {
    List<String> expected = new ArrayList<>();
    try (DigestSpool spool = new DigestSpool()) {
      for (int i = 0; i < count; i++) {
        spool.add(digest(i));
        expected.add(HexFormat.of().formatHex(digest(i)));
      }
      for (int time = 0; time < 2; time++) {
        List<String> found = new ArrayList<>();
        spool.forEach(digest -> found.add((String) digest));
        assertThat(found).isEqualTo(expected);
      }
    }
  }
}
