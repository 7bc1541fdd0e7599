// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.weights;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.JdkFiles;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.natives.ipc.LocalSockets;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.threads.Preparations;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;

/// Loads one byte in the background, so that the first load of the program finds its classes loaded
/// and its native functions linked. These take a first load of 100 MB more time than its bytes.
public final class Rehearsal {
  /// The length of the header is a multiple of 8.
  private static final String HEADER =
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}   ";

  private Rehearsal() {}

  /// Begins the rehearsal, and returns without waiting; does nothing after the first call in a
  /// process, or if another thread could only run instead of the caller.
  public static void begin() {
    if (!JdkFiles.areChosen() && Runtime.getRuntime().availableProcessors() > 1) {
      Preparations.beginOnce("gantry-prepare-load", Rehearsal::load);
    }
  }

  /// Loads the tensor of a file in memory, with a session of its own, so that the program's own
  /// sessions count only what the program does.
  ///
  /// @return how long the loaded tensor is, in bytes
  static long load() {
    int fd = Errno.require(LocalSockets.memoryFile("gantry-rehearsal"), "memfd_create", HEADER);
    try (GantrySession session = GantrySession.open();
        Arena arena = Arena.ofConfined()) {
      MemorySegment file = arena.allocate(Long.BYTES + HEADER.length() + 1);
      file.set(JAVA_LONG_UNALIGNED, 0, HEADER.length());
      MemorySegment.copy(
          HEADER.getBytes(StandardCharsets.US_ASCII),
          0,
          file,
          JAVA_BYTE,
          Long.BYTES,
          HEADER.length());
      long _ = Errno.require(Libc.INSTANCE.pwrite(fd, file, file.byteSize(), 0), "pwrite", HEADER);
      WeightsCatalogue weights =
          WeightsFormats.open(session, Location.of(Path.of("/proc/self/fd/" + fd)));
      List<StoredTensor> tensors = List.copyOf(weights.tensors().values());
      try (LoadedTensors loaded =
          LoadedTensors.load(session, tensors, Device.HOST, TransferOptions.defaults())) {
        return loaded.regions().getFirst().length();
      }
    } finally {
      int _ = Libc.INSTANCE.close(fd);
    }
  }
}
