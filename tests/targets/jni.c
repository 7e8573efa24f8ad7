/* The native methods of Jni.java. */
#include <jni.h>

JNIEXPORT jint JNICALL Java_Jni_each(JNIEnv *env, jclass jni, jobject job, jint times) {
    jmethodID run = (*env)->GetMethodID(env, (*env)->GetObjectClass(env, job), "run", "()V");
    for (jint i = 0; i < times && !(*env)->ExceptionCheck(env); i++) {
        (*env)->CallVoidMethod(env, job, run);
    }
    return times;
}
