// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.transport.TransportOracle.Answer;
import dev.gantry.core.internal.transport.TransportOracle.Question;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// The choice of the transport for given bytes, and the reasons against better ones.
class TransportOracleTest {
  private static final String GPU = "cuda:0";

  private final List<Transport> asked = new ArrayList<>();

  private static Question question(
      String device, @Nullable String only, String descriptor, String direct, String failure) {
    Transport named = only == null ? null : Transport.valueOf(only.toUpperCase(Locale.ROOT));
    return new Question(
        Location.of(Path.of("file")), Device.parse(device), named, descriptor, direct, failure);
  }

  private Answer decide(Question question, boolean cached, @Nullable String refusal) {
    return TransportOracle.decide(
        question,
        cached,
        transport -> {
          asked.add(transport);
          return refusal == null ? "" : refusal;
        });
  }

  @ParameterizedTest
  @CsvSource(
      nullValues = "-",
      value = {
        // The columns are: device, only, no descriptor, no direct I/O, failure, cached, cuFile
        // refuses, transport, and reason.
        "host, -, '', '', '', true, -, host, ''",
        "host, -, '', '', '', false, -, host, ''",
        "host, host, '', '', '', false, -, host, ''",
        "host, -, '', no O_DIRECT, '', false, -, host, no O_DIRECT",
        "host, -, remote, remote, '', false, -, host, remote",
        "cuda:0, -, '', '', '', true, -, staged, no bytes had to be read past the page cache",
        "cuda:0, -, '', '', '', false, -, gds, ''",
        "cuda:0, -, '', '', '', false, no library, staged, no gds: no library",
        "cuda:0, -, '', no O_DIRECT, '', false, -, staged, no gds: no O_DIRECT",
        "cuda:0, -, remote, remote, '', false, -, staged, no gds: remote",
        "cuda:0, -, remote, remote, '', true, -, staged, no gds: remote",
        "cuda:0, -, '', '', it broke, true, -, staged, it broke",
        "cuda:0, -, '', '', it broke, false, -, staged, it broke",
        "cuda:0, staged, '', '', '', false, -, staged, asked for",
        "cuda:0, staged, remote, remote, '', true, -, staged, asked for",
        "cuda:0, gds, '', '', '', true, -, gds, asked for",
        "cuda:0, gds, '', '', '', false, -, gds, asked for",
        "cuda:0, compat, '', '', '', true, -, compat, asked for",
        "cuda:0, compat, '', no O_DIRECT, '', false, -, compat, asked for",
      })
  void carries(
      String device,
      @Nullable String only,
      String descriptor,
      String direct,
      String failure,
      boolean cached,
      @Nullable String refusal,
      String transport,
      String reason) {
    Answer answer = decide(question(device, only, descriptor, direct, failure), cached, refusal);
    assertThat(answer.transport()).hasToString(transport);
    assertThat(answer.reason()).isEqualTo(reason);
  }

  @ParameterizedTest
  @CsvSource(
      nullValues = "-",
      value = {
        "host, gds, '', '', -, 'it serves memory of a CUDA device, not of host'",
        "host, compat, '', '', -, 'it serves memory of a CUDA device, not of host'",
        "host, staged, '', '', -, 'it serves memory of a CUDA device, not of host'",
        "cuda:0, host, '', '', -, 'it serves host memory, not memory of cuda:0'",
        "cuda:0, gds, '', '', no library, 'file: no library'",
        "cuda:0, gds, '', no O_DIRECT, -, 'file: no O_DIRECT'",
        "cuda:0, gds, remote, remote, -, 'file: remote'",
        "cuda:0, compat, '', '', no library, 'file: no library'",
        "cuda:0, compat, remote, remote, -, 'file: remote'",
      })
  void refuses(
      String device,
      String only,
      String descriptor,
      String direct,
      @Nullable String refusal,
      String reason) {
    for (boolean cached : new boolean[] {false, true}) {
      assertThatThrownBy(
              () -> decide(question(device, only, descriptor, direct, ""), cached, refusal))
          .isInstanceOf(DeviceUnavailableException.class)
          .hasMessage("transport %s cannot serve: %s", only, reason);
    }
  }

  @Test
  void cuFileIsAskedOnlyIfTheAnswerDependsOnIt() {
    decide(question("host", null, "", "", ""), false, null);
    decide(question(GPU, null, "", "", ""), true, null);
    decide(question(GPU, null, "", "", "it broke"), false, null);
    decide(question(GPU, null, "remote", "remote", ""), false, null);
    decide(question(GPU, null, "", "no O_DIRECT", ""), false, null);
    decide(question(GPU, "staged", "", "", ""), false, null);
    assertThat(asked).isEmpty();
    decide(question(GPU, null, "", "", ""), false, null);
    decide(question(GPU, "compat", "", "", ""), true, null);
    assertThat(asked).containsExactly(Transport.GDS, Transport.COMPAT);
  }

  @ParameterizedTest
  @CsvSource({
    "4096, 8192, true, gds, gds",
    "4096, 8192, true, compat, compat",
    "4096, 8192, true, staged, staged",
    "4096, 8192, false, gds, staged",
    "4097, 8192, true, gds, staged",
    "4096, 8191, true, gds, staged",
  })
  void cuFileWritesWholeBlocksOfOneAlignedPiece(
      long address, long length, boolean whole, String ofFile, String transport) {
    Source memory = new Memory.OnDevice(new Device.Cuda(0), address, length);
    Transport file = Transport.valueOf(ofFile.toUpperCase(Locale.ROOT));
    assertThat(TransportOracle.ofWrite(memory, whole, file)).hasToString(transport);
  }

  @Test
  void hostMemoryIsWrittenByTheHost() {
    Source memory = new Memory.OnHost(MemorySegment.ofAddress(4096).reinterpret(4096));
    assertThat(TransportOracle.ofWrite(memory, true, Transport.GDS)).isEqualTo(Transport.HOST);
  }
}
