// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.spi.Residency;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// A file of known bytes that is opened over faulty calls.
@ExtendWith(NoLeaks.class)
abstract class SourceFileFixture {
  static final int LENGTH = 10 * 4096 + 77;
  static final int MANY = 1 << 20;
  static final long SEED = 20261121;

  /// The value of `OVERLAYFS_SUPER_MAGIC` in linux/magic.h; [#TMPFS] is `TMPFS_MAGIC`.
  static final long OVERLAYFS = 0x794c7630;

  static final long TMPFS = 0x01021994;

  final FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);

  @TempDir Path folder;
  Path path;

  @BeforeEach
  void writeFile() {
    path = TestFiles.write(folder.resolve("weights"), SEED, LENGTH);
  }

  SourceFile open(Path file, CachePolicy policy) {
    return new Stores(calls).open(Location.of(file), policy);
  }

  static boolean prefersDirect(SourceFile file, long offset, long length) {
    return file.residency(offset, length) != Residency.HOT;
  }

  /// Reads the whole file up to the end of its last block, as a plan does.
  byte[] readAll(CachePolicy policy) {
    try (SourceFile file = open(path, policy)) {
      return readAll(file, LENGTH);
    }
  }

  static byte[] readAll(SourceFile file, int required) {
    HostSlab slab = HostSlab.allocate(11 * 4096);
    try {
      boolean direct = prefersDirect(file, 0, slab.size());
      boolean _ = file.read(slab.segment(), 0, required, direct);
      return Arrays.copyOf(slab.segment().toArray(ValueLayout.JAVA_BYTE), required);
    } finally {
      slab.release();
    }
  }
}
