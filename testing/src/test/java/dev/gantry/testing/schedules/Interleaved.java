// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing.schedules;

import java.io.IOException;
import java.io.InputStream;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassHierarchyResolver;
import java.lang.classfile.ClassModel;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.CodeElement;
import java.lang.classfile.CodeModel;
import java.lang.classfile.Label;
import java.lang.classfile.MethodModel;
import java.lang.classfile.Opcode;
import java.lang.classfile.instruction.FieldInstruction;
import java.lang.classfile.instruction.InvokeInstruction;
import java.lang.classfile.instruction.MonitorInstruction;
import java.lang.classfile.instruction.ReturnInstruction;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;
import java.lang.reflect.AccessFlag;
import java.util.Set;
import java.util.stream.Collectors;

/// Loads the classes of a package with points at which another thread may run: before locks are
/// taken, before mutable fields are read or written, and before calls of `java.util.concurrent`
/// and of stores.
final class Interleaved extends ClassLoader {
  private static final ClassDesc POINTS = ClassDesc.of(Points.class.getName());
  private static final MethodTypeDesc NOTHING = MethodTypeDesc.of(ConstantDescs.CD_void);
  private static final MethodTypeDesc OF_OBJECT =
      MethodTypeDesc.of(ConstantDescs.CD_void, ConstantDescs.CD_Object);

  private final String within;
  private final ClassFile classFiles;

  /// @param within the package whose classes get points
  Interleaved(String within) {
    super(Interleaved.class.getClassLoader());
    this.within = within;
    this.classFiles =
        ClassFile.of(
            ClassFile.ClassHierarchyResolverOption.of(
                ClassHierarchyResolver.ofResourceParsing(getParent())
                    .orElse(ClassHierarchyResolver.defaultResolver())));
  }

  @Override
  protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
    if (!name.startsWith(within + ".")) {
      return super.loadClass(name, resolve);
    }
    synchronized (getClassLoadingLock(name)) {
      Class<?> loaded = findLoadedClass(name);
      return loaded == null ? define(name) : loaded;
    }
  }

  private Class<?> define(String name) throws ClassNotFoundException {
    try (InputStream in = getParent().getResourceAsStream(name.replace('.', '/') + ".class")) {
      if (in == null) {
        throw new ClassNotFoundException(name);
      }
      byte[] bytes = withPoints(classFiles.parse(in.readAllBytes()));
      return defineClass(name, bytes, 0, bytes.length);
    } catch (IOException e) {
      throw new ClassNotFoundException(name, e);
    }
  }

  private byte[] withPoints(ClassModel model) {
    Set<String> constant =
        model.fields().stream()
            .filter(field -> field.flags().has(AccessFlag.FINAL))
            .map(field -> field.fieldName().stringValue())
            .collect(Collectors.toSet());
    return classFiles.transformClass(
        model,
        (builder, element) -> {
          if (element instanceof MethodModel method && method.code().isPresent()) {
            builder.withMethod(
                method.methodName(),
                method.methodType(),
                method.flags().flagsMask() & ~ClassFile.ACC_SYNCHRONIZED,
                made ->
                    method.forEach(part -> {
                      if (part instanceof CodeModel code) {
                        made.withCode(to -> write(model, method, code, constant, to));
                      } else if (!(part instanceof java.lang.classfile.AccessFlags)) {
                        made.with(part);
                      }
                    }));
          } else {
            builder.with(element);
          }
        });
  }

  private static void write(
      ClassModel type, MethodModel method, CodeModel code, Set<String> constant, CodeBuilder to) {
    if (!method.flags().has(AccessFlag.SYNCHRONIZED)) {
      code.forEach(element -> write(type, element, constant, to));
      return;
    }
    boolean isStatic = method.flags().has(AccessFlag.STATIC);
    call(to, type, isStatic, "enter");
    Label begin = to.newBoundLabel();
    code.forEach(element -> {
      if (element instanceof ReturnInstruction) {
        call(to, type, isStatic, "exit");
      }
      write(type, element, constant, to);
    });
    Label end = to.newBoundLabel();
    // The method's own handlers precede this handler, so they catch exceptions first.
    to.exceptionCatchAll(begin, end, end);
    call(to, type, isStatic, "exit");
    to.athrow();
  }

  /// Calls a method of [Points] with the monitor of a synchronized method as its argument.
  private static void call(CodeBuilder to, ClassModel type, boolean isStatic, String name) {
    if (isStatic) {
      to.ldc(type.thisClass());
    } else {
      to.aload(0);
    }
    to.invokestatic(POINTS, name, OF_OBJECT);
  }

  private static void write(
      ClassModel type, CodeElement element, Set<String> constant, CodeBuilder to) {
    switch (element) {
      case MonitorInstruction monitor ->
          to.invokestatic(
              POINTS, monitor.opcode() == Opcode.MONITORENTER ? "enter" : "exit", OF_OBJECT);
      case FieldInstruction field -> {
        if (!field.owner().equals(type.thisClass())
            || !constant.contains(field.name().stringValue())) {
          to.invokestatic(POINTS, "pass", NOTHING);
        }
        to.with(field);
      }
      case InvokeInstruction call -> write(call, to);
      default -> to.with(element);
    }
  }

  private static void write(InvokeInstruction call, CodeBuilder to) {
    String owner = call.owner().asInternalName();
    String name = call.name().stringValue();
    String called = name + call.type().stringValue();
    if (owner.endsWith("/IdleWatch") && name.equals("watch")) {
      to.invokestatic(POINTS, "watch", call.typeSymbol());
    } else if (called.equals("wait()V")) {
      to.invokestatic(POINTS, "await", OF_OBJECT);
    } else if (called.equals("notify()V")) {
      to.invokestatic(POINTS, "wake", OF_OBJECT);
    } else if (called.equals("notifyAll()V")) {
      to.invokestatic(POINTS, "wakeAll", OF_OBJECT);
    } else {
      if (owner.startsWith("java/util/concurrent/") || owner.contains("/spi/")) {
        to.invokestatic(POINTS, "pass", NOTHING);
      }
      to.with(call);
    }
  }
}
