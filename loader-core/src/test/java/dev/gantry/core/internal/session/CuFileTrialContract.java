// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.abort;

import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.cufile.CuFileRule.Way;
import dev.gantry.core.internal.session.CuFileTrial.Part;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// What is measured is what was asked for: all bytes arrive by each way.
@ExtendWith(NoLeaks.class)
abstract class CuFileTrialContract {
  private static final int FILE_BYTES = 3_000_001;
  private static final int PART_BYTES = 10_000;
  private static final int PARTS = 200;

  @TempDir private Path folder;

  @ParameterizedTest
  @EnumSource
  void allPartsArrive(Way way) throws IOException {
    byte[] bytes = new byte[FILE_BYTES];
    Random random = new Random(5);
    random.nextBytes(bytes);
    Path file = Files.write(folder.resolve("file"), bytes);
    List<Part> parts = new ArrayList<>();
    for (int i = 0; i < PARTS; i++) {
      parts.add(
          new Part(random.nextInt(FILE_BYTES - PART_BYTES), (long) i * PART_BYTES, PART_BYTES));
    }
    try (CuFileTrial trial = open(file)) {
      if (way == Way.STREAM && trial.transport() == Transport.COMPAT) {
        assertThatThrownBy(() -> trial.prepare(way, parts, 1))
            .isInstanceOf(DeviceUnavailableException.class)
            .hasMessageStartingWith("in compatibility mode");
        return;
      }
      for (int depth : new int[] {1, 7}) {
        try (CuFileTrial.Reading reading = trial.prepare(way, parts, depth)) {
          reading.run();
          // The same again: what is prepared serves more than once.
          reading.run();
        }
        check(trial, parts, bytes);
      }
    }
  }

  private static CuFileTrial open(Path file) {
    try {
      return CuFileTrial.open(file, new Device.Cuda(0), false, (long) PARTS * PART_BYTES);
    } catch (TransferException e) {
      return abort("cuFile cannot have files here: " + e.getMessage());
    }
  }

  private static void check(CuFileTrial trial, List<Part> parts, byte[] bytes) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment host = arena.allocate(trial.memory().size());
      trial.memory().copyToHost(0, host, host.byteSize());
      for (Part part : parts) {
        byte[] read =
            host.asSlice(part.memoryOffset(), part.bytes()).toArray(ValueLayout.JAVA_BYTE);
        int from = (int) part.fileOffset();
        assertThat(Arrays.equals(read, Arrays.copyOfRange(bytes, from, from + PART_BYTES)))
            .as(part.toString())
            .isTrue();
      }
    }
  }
}
