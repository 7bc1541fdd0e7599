// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.GantryException;
import dev.gantry.core.Location;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.RegisteredPages;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.store.SourceFile;
import java.util.function.BiFunction;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// Registers a file with the driver, or copies it, unless there is a reason against it.
/// Thread-safe.
///
/// @param opener opens a file
/// @param registered counts the pages that all sessions and processes have registered
/// @param isEnded whether the session is being closed, so that registering or copying should stop
record FileMaker(
    FileCalls calls,
    BiFunction<Location, CachePolicy, SourceFile> opener,
    RegisteredPages registered,
    Room room,
    BooleanSupplier isEnded) {
  /// Gives up kept files until another file fits the memory that kept files may take.
  @FunctionalInterface
  interface Room {
    /// @param bytes the size of the new file
    /// @param counted how many of the new file's bytes count as registered already
    /// @return the reason why the new file does not fit; empty if it does
    String make(long bytes, long counted);
  }

  /// Opens a file and keeps it in memory. `new Present<>` allocates the answer before the file is
  /// kept: if the heap ended afterwards, the kept file would be lost.
  ///
  /// @param context the device whose driver registers the file; null to copy the file for the CPU
  /// @param identity the identity that the file must have
  /// @param asked whether the caller uses the file at once; the file is then registered even if it
  ///     is not in the page cache
  Availability<KeptFile> make(
      @Nullable CudaContext context, Location location, Object identity, boolean asked) {
    try {
      if (isEnded.getAsBoolean()) {
        return Availability.absent("not kept: the session is closed");
      }
      CachePolicy policy = context == null ? CachePolicy.BY_RESIDENCY : CachePolicy.BUFFERED;
      return Cleanup.orUndo(
          () -> opener.apply(location, policy),
          file -> {
            String reason = refusal(context, file, identity, asked);
            if (reason.isEmpty()) {
              return context == null ? copied(file) : mapped(context, file);
            }
            file.close();
            return Availability.absent(reason);
          },
          SourceFile::close);
    } catch (GantryException e) {
      return Availability.absent("not kept: " + e.getMessage());
    }
  }

  private static String refusal(
      @Nullable CudaContext context, SourceFile file, Object identity, boolean asked) {
    if (!identity.equals(file.identity())) {
      return "not kept: another file has taken its place";
    }
    if (file.descriptors().buffered() < 0) {
      return "not kept: " + file.descriptors().absence();
    }
    if (context != null && !context.driver().pinsReadOnly(context.device().ordinal())) {
      return "not kept: the driver registers no read-only memory";
    }
    if (file.size() == 0) {
      return "not kept: the file is empty";
    }
    long resident = context == null || asked ? file.size() : file.residentBytes();
    if (resident < file.size()) {
      return "not kept: "
          + Math.max(0, resident)
          + " of "
          + file.size()
          + " bytes are in the page cache";
    }
    return "";
  }

  private Availability<KeptFile> copied(SourceFile file) {
    String reason = room.make(file.size(), 0);
    if (reason.isEmpty()) {
      return new Availability.Present<>(new CopiedFile(file, isEnded));
    }
    file.close();
    return Availability.absent(reason);
  }

  private Availability<KeptFile> mapped(CudaContext context, SourceFile file) {
    long bytes = MappedFile.bytes(calls, file);
    boolean counts = false;
    try {
      // The pages are counted before memory is made free: if two processes do this at once, the
      // second counts both files.
      registered.add(bytes);
      String reason = room.make(file.size(), bytes);
      if (reason.isEmpty()) {
        Availability<KeptFile> kept =
            new Availability.Present<>(new MappedFile(context, registered, calls, file));
        counts = true;
        return kept;
      }
      file.close();
      return Availability.absent(reason);
    } finally {
      if (!counts) {
        registered.add(-bytes);
      }
    }
  }
}
