// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.events.EventKind;
import dev.gantry.core.internal.events.TimedEvent;
import dev.gantry.core.internal.transport.TransferEngine;
import dev.gantry.core.internal.transport.TransferOptions;

/// One load to any destination. If it fails, nothing that it allocated stays allocated.
final class LoadOperation {
  private LoadOperation() {}

  static TransferReport run(
      TransferEngine engine, Destination destination, TransferOptions options) {
    return engine.using(() -> load(engine, destination, options));
  }

  private static TransferReport load(
      TransferEngine engine, Destination destination, TransferOptions options) {
    Device first = destination.devices().getFirst();
    TimedEvent event = TimedEvent.begun(EventKind.LOAD);
    try {
      TransferReport report = destination.finish(transfer(engine, destination, options));
      engine.counters().addLoad(true);
      event.done(
          first,
          destination.parts(),
          report.files().size(),
          report.bytes(),
          report.directBytes(),
          report.reads(),
          "");
      return report;
    } catch (RuntimeException | Error failure) {
      engine.counters().addLoad(false);
      event.done(first, destination.parts(), 0, 0, 0, 0, failure);
      destination.undo(failure);
      throw failure;
    }
  }

  /// Does the reads, then deregisters new slabs from cuFile, since a load fills its slabs only
  /// once.
  private static TransferReport transfer(
      TransferEngine engine, Destination destination, TransferOptions options) {
    try {
      return engine.transfer(
          destination.reads(),
          destination.devices(),
          destination.spread(),
          destination::prepare,
          options);
    } finally {
      if (destination instanceof NewSlabs slabs) {
        slabs.slabs().forEach(engine.cuFile()::deregister);
      }
    }
  }
}
