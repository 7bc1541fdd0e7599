// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.store.SourceFile;
import org.jspecify.annotations.Nullable;
import org.slf4j.LoggerFactory;

/// The state of one file in [KeptFiles], whose lock guards all fields.
final class KeptEntry {
  final Object identity;
  final long size;

  /// How many bytes batches have read from the file since it was first used, last kept, or last
  /// given up.
  long readBytes;

  /// How many batches use the file now.
  int users;

  long usedNanos;

  /// Whether a thread is registering or copying the file.
  boolean underWay;

  /// Whether it was logged that the file is remote.
  private boolean loggedRemote;

  /// Whether the file is given up as soon as no batch uses it; no other batch gets it.
  boolean leaving;

  String refusal = "";
  @Nullable KeptFile kept;

  KeptEntry(SourceFile file) {
    identity = file.identity();
    size = file.size();
  }

  /// Returns why a remote file is not kept, and logs the reason once. After a cache has got the
  /// whole file, the file is local and can be kept.
  Availability<KeptFile> remote(SourceFile file) {
    String reason = "not kept: " + file.descriptors().absence();
    if (!loggedRemote) {
      loggedRemote = true;
      LoggerFactory.getLogger(KeptFiles.class).info("{}: {}", file.file(), reason);
    }
    return Availability.absent(reason);
  }
}
