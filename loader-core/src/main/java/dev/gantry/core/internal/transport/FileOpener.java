// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.store.Stores;
import dev.gantry.core.internal.threads.UseGate;
import dev.gantry.core.internal.transport.FileTransport.OpenFile;
import java.util.function.BiConsumer;

/// Opens a session's files through their stores, and chooses a transport for each. Thread-safe.
///
/// @param cuFile opens the session's cuFile driver
record FileOpener(UseGate gate, Stores stores, CuFileSession cuFile) {
  SourceFile open(Location file, CachePolicy policy) {
    gate.requireOpen();
    return stores.open(file, policy);
  }

  /// Opens a file and chooses its transport. The cancellation in the options ends the opening.
  OpenFile open(Location file, Device device, TransferOptions options) {
    return open(file, device, options, (_, _) -> {});
  }

  /// Does the same as [#open(Location, Device, TransferOptions)].
  ///
  /// @param opened called with the file's identity; throws to refuse the file
  OpenFile open(
      Location location,
      Device device,
      TransferOptions options,
      BiConsumer<Location, Object> opened) {
    gate.requireOpen();
    return Cleanup.orUndo(
        () -> stores.open(location, options.cachePolicy(), options.cancellation()),
        file -> {
          opened.accept(location, file.identity());
          return withTransport(file, device, options);
        },
        SourceFile::close);
  }

  private OpenFile withTransport(SourceFile file, Device device, TransferOptions options) {
    return new OpenFile(
        file,
        new FileTransport(
            file.file(),
            file.descriptors(),
            device,
            ReaderRule.transport(device, options),
            cuFile,
            file.isCached()));
  }

  /// Opens the cache's local copy of a remote file, after the cache has got the whole file.
  OpenFile reopen(OpenFile filling, Device device, TransferOptions options) {
    return Cleanup.orUndo(
        () -> filling.source().local(options.cachePolicy()),
        file -> withTransport(file, device, options),
        SourceFile::close);
  }
}
