// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import dev.gantry.core.internal.events.EventKind.Field;
import dev.gantry.core.internal.events.EventKind.Unit;

/// Flight recorder event: a ring handed over a batch.
public final class RingBatchEvent extends TimedEvent {
  static final EventKind KIND =
      EventKind.all(
          "RingBatch",
          "Batch handed over",
          "A prefetching ring handed a batch to its consumer",
          new Field("number", "Number", Unit.COUNT),
          new Field("bytes", "Size", Unit.BYTES),
          new Field("waited", "Consumer waited", Unit.NANOSECONDS),
          new Field(
              "prepared",
              "Prepared within",
              Unit.NANOSECONDS,
              "From asking the source until only the device had work left"));

  private RingBatchEvent() {
    super(KIND);
  }

  /// Writes the event if it is recorded.
  public static void handedOver(long number, long bytes, long waited, long prepared) {
    RingBatchEvent event = new RingBatchEvent();
    if (event.isUnderWay()) {
      event.write(number, bytes, waited, prepared);
    }
  }
}
