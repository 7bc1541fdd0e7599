// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.weights;

import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.MemoryFile;
import dev.gantry.core.internal.threads.Preparations;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.spi.StoredTensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
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
    if (MemoryFile.isPossible() && Runtime.getRuntime().availableProcessors() > 1) {
      Preparations.beginOnce("gantry-prepare-load", Rehearsal::load);
    }
  }

  /// Loads the tensor of a file in memory, with a session of its own, so that the program's own
  /// sessions count only what the program does. The memory that it has prepared meanwhile stays.
  ///
  /// @return how long the loaded tensor is, in bytes
  static long load() {
    ByteBuffer bytes = ByteBuffer.allocate(Long.BYTES + HEADER.length() + 1);
    bytes.order(ByteOrder.LITTLE_ENDIAN).putLong(HEADER.length());
    bytes.put(HEADER.getBytes(StandardCharsets.US_ASCII));
    GantrySession session = GantrySession.open();
    try (MemoryFile file = MemoryFile.of(bytes.array())) {
      List<StoredTensor> tensors =
          List.copyOf(WeightsFormats.open(session, Location.of(file.path())).tensors().values());
      try (LoadedTensors loaded =
          LoadedTensors.load(session, tensors, Device.HOST, TransferOptions.defaults())) {
        return loaded.regions().getFirst().length();
      }
    } finally {
      session.closeKeepingIdle();
    }
  }
}
